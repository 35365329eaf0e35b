# `make demo` and `make test` set up all they need: .venv by pinned constraints, and for tests Debian's programs.
.PHONY: help setup demo test test-image lab check bench soak results docs screenshots clean
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PROGRAMS := .venv/.programs
RATES := --rate 0.01 --rate 0.02 --rate 0.05 --rate 0.1 --rate 0.2 --rate 0.4 --rate 0.6 --rate 0.8

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup: $(READY) ## make .venv and install the service with its development tools

$(READY): pyproject.toml deploy/constraints.txt deploy/setup
	PYTHON=$(PYTHON) deploy/setup .venv
	@touch $(READY)

$(PROGRAMS): $(READY) deploy/programs
	deploy/programs
	@touch $(PROGRAMS)

demo: $(READY) ## a network with its collectors, mistakes and the console; ARGS=--once ends with the first
	$(BIN)/gsid demo $(ARGS)

check: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(READY) $(PROGRAMS) ## all tests; with CI=true the lab, too
	$(BIN)/pytest -n 4 --dist worksteal  # more than cores: most tests wait for processes
	@test "$$CI" != true || $(MAKE) --no-print-directory lab

test-image: $(READY) ## build the container image and run it; needs root, buildah, podman
	$(BIN)/python -m tests.deploy.image

lab: $(READY) ## mistakes on real routers, FRR and BIRD in network namespaces; needs root
	@test -x /usr/lib/frr/zebra -a -x /usr/sbin/bird || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends frr bird2; }
	GSID_LAB=1 $(BIN)/pytest tests/lab

bench: $(READY) ## measure, against what is named beside each figure
	$(BIN)/gsid bench simulate
	$(BIN)/gsid bench score
	$(BIN)/gsid bench verify
	$(BIN)/gsid bench serve
	$(BIN)/gsid bench large
	$(BIN)/gsid bench notify
	$(BIN)/gsid bench collect
	$(BIN)/gsid bench classes

soak: $(READY) ## an hour of many networks' lives, and every page held against the truth
	$(BIN)/python -m tests.fault.soak --minutes 60 --networks 60 --seed 1 --out build/soak
	$(BIN)/python -m tests.fault.soak.plot build/soak docs/results/soak.svg

results: $(READY) ## train and measure all that docs/results.md shows; hours, and goes on where it was
	$(BIN)/gsid train shipped --out build/shipped
	$(BIN)/gsid evaluate --setting operations --split standard --split larger --split real --model build/shipped/model
	$(BIN)/gsid evaluate --setting operations --split standard --split larger --split real --model build/shipped/model --pages
	$(BIN)/gsid evaluate --setting reference --split standard --split larger --split real $(RATES) --methods gsid,diff --scope all --model build/shipped/model --plot docs/results/gsid-1.svg
	$(BIN)/gsid evaluate --setting snapshot --split standard --split larger --split real --methods gsid --scope all --model build/shipped/model
	$(BIN)/gsid study --out build/study --figures docs/results

docs: $(READY) ## write the generated files under docs/ anew
	$(BIN)/gsid schema > docs/snapshot.schema.json
	$(BIN)/gsid settings > docs/gsid.toml
	$(BIN)/gsid settings --markdown > docs/configuration.md
	$(BIN)/python -m deploy.grafana.write

screenshots: $(READY) $(PROGRAMS) ## take the console's pictures in docs/console/ anew
	$(BIN)/python -m tests.browser.screenshots docs/console

clean: ## remove what the other targets made
	rm -rf .venv build .hypothesis .pytest_cache .mypy_cache .ruff_cache *.egg-info
