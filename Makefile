# The two commands a newcomer needs: `make demo` and `make test`. Each sets up what it needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
# Baseline of the published protocol, made at each release; until there is one, breaking changes are allowed.
BASELINE := protos/baseline.binpb

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types imports protos-check conformance protos fix bench soak clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## Make the environment in .venv, with the `referee` command in it

$(STAMP): pyproject.toml requirements.lock scripts/setup
	@PYTHON=$(PYTHON) scripts/setup $(VENV)
	@touch $@

demo: setup ## Play matches of every game between house bots over gRPC, and verify every log
	@$(BIN)/referee demo

test: setup ## Run the tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal

check: lint types imports protos-check test conformance ## Everything that has to hold: lint, types, imports, protos, tests, conformance

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

imports: setup
	@PYTHONPATH=server:clients/python:protos/gen/python $(BIN)/lint-imports

protos-check: setup
	@$(BIN)/buf lint protos
	@$(BIN)/buf format -d --exit-code protos
	@if [ -e $(BASELINE) ]; then $(BIN)/buf breaking protos --against $(BASELINE); else echo "no release yet: the protocol may still change"; fi
	@PYTHON=$(PYTHON) scripts/protos --check

conformance: setup ## Check games, clients and agents against what they have to keep to
	@$(BIN)/python -m pytest -q tests/games/test_conformance.py tests/e2e/test_conformance.py tests/e2e/test_clients.py

protos: setup ## Generate the Python code of protos/
	@PYTHON=$(PYTHON) scripts/protos

fix: setup ## Format, and mend what can be mended by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/buf format -w protos

bench: setup ## Measure speed: ratios of runs taken in turn
	@$(BIN)/referee bench

soak: setup ## Prove by long runs what short ones cannot: hours (scripts/soak, for one kind and other numbers)
	@scripts/soak all

clean: ## Delete what the other targets made
	@rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
