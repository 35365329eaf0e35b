# `make demo` and `make test` set up all they need: .venv by pinned constraints, and nothing else.
.PHONY: help setup demo test check bench docs clean
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

setup: $(READY) ## make .venv and install the service with its development tools

$(READY): pyproject.toml deploy/constraints.txt deploy/setup
	PYTHON=$(PYTHON) deploy/setup .venv
	@touch $(READY)

demo: $(READY) ## simulate a network with mistakes in it, and show whose traffic moved
	@rm -rf build/demo
	$(BIN)/gsid simulate --split operations --topology topozoo/Abilene --count 1 --seed 3 --out build/demo
	$(BIN)/gsid forwarding build/demo/0000/snapshot.json --always-compare-med --against build/demo/0000/baseline.json
	@echo "What is wrong in it (labels), and what was meant (changes):"
	@cat build/demo/0000/labels.json

check: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(READY) ## all tests
	$(BIN)/pytest -n auto

bench: $(READY) ## measure, against what is named beside each figure
	$(BIN)/gsid bench simulate
	$(BIN)/gsid bench score

docs: $(READY) ## write the generated files under docs/ anew
	$(BIN)/gsid schema > docs/snapshot.schema.json

clean: ## remove what the other targets made
	rm -rf .venv build .hypothesis .pytest_cache .mypy_cache .ruff_cache *.egg-info
