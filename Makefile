# `make demo` and `make test` set up all they need: .venv by pinned constraints, and nothing else.
.PHONY: help setup demo test check bench results docs clean
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
RATES := --rate 0.01 --rate 0.02 --rate 0.05 --rate 0.1 --rate 0.2 --rate 0.4 --rate 0.6 --rate 0.8

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
	$(BIN)/gsid bench verify
	$(BIN)/gsid bench serve
	$(BIN)/gsid bench notify

results: $(READY) ## train and measure all that docs/results.md shows; hours, and goes on where it was
	$(BIN)/gsid train shipped --out build/shipped
	$(BIN)/gsid evaluate --setting operations --split standard --split larger --split real --model build/shipped/model
	$(BIN)/gsid evaluate --setting reference --split standard --split larger --split real $(RATES) --methods gsid,diff --scope all --model build/shipped/model --plot docs/results/gsid-1.svg
	$(BIN)/gsid evaluate --setting snapshot --split standard --split larger --split real --methods gsid --scope all --model build/shipped/model
	$(BIN)/gsid study --out build/study --figures docs/results

docs: $(READY) ## write the generated files under docs/ anew
	$(BIN)/gsid schema > docs/snapshot.schema.json
	$(BIN)/gsid settings > docs/gsid.toml

clean: ## remove what the other targets made
	rm -rf .venv build .hypothesis .pytest_cache .mypy_cache .ruff_cache *.egg-info
