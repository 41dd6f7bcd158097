# Two commands: `make demo` shows it, `make test` checks it. Both set everything up in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: help install demo serve test check format clean

help: ## what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.installed ## set up .venv with .venv/bin/ivr and the offline model
demo: $(VENV)/.installed ## a caller dials, talks, is cut off, calls back and goes on; about two minutes
	$(BIN)/ivr demo
serve: $(VENV)/.installed ## run the service with the offline model until Ctrl-C
	$(BIN)/ivr serve --sandbox
test: check ## all checks and tests
	$(BIN)/python -m pytest
check: $(VENV)/.dev ## style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy ivr memory callflows tests
	$(BIN)/ivr flows check
format: $(VENV)/.dev ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
clean: ## remove what the above made, the demo's data too
	rm -rf $(VENV) var build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "callthread needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)." \
		       "Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Setting up $(VENV): 2.4 GB, three to five minutes, the first time only ..."
	$(PIP_INSTALL) --editable '.[sandbox]'
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP_INSTALL) --editable '.[sandbox,dev]'
	@touch $@
