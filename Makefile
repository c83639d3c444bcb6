# `make` prints this help. Every target sets up what it needs: Python >= 3.11 is all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
RECORDER := $(VENV)/.recorder
DEV := $(VENV)/.dev
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench samples docs clean

help: ## print this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: $(RECORDER) ## record a run of two ranks and analyse it, then a sample of four
	$(BIN)/python examples/ddp.py --ranks 2 --out $(VENV)/demo
	$(BIN)/tracekit analyze $(VENV)/demo
	$(BIN)/tracekit analyze sample_traces/slow_rank

test: $(DEV) ## run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(DEV) ## format, lint, types, layers, docs, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(VENV)/site

format: $(DEV) ## format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV) ## measure speed and memory against HolisticTraceAnalysis (about 15 minutes)
	$(BIN)/python -m benchmarks

samples: $(DEV) ## record the sample traces anew
	$(BIN)/python sample_traces/record.py

docs: $(DEV) ## generate the reference pages and build the site into site/
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove the environment and everything built
	rm -rf $(VENV) site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing tracekit into $(VENV)"
	@$(PIP_INSTALL) --editable .
	@touch $@

$(RECORDER): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing tracekit and torch for CPUs into $(VENV); the first time takes a few minutes"
	@$(PIP_INSTALL) --editable '.[torch]'
	@touch $@ $(CORE)

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing tracekit and its development tools into $(VENV); the first time takes a few minutes"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $@ $(CORE)
