# Everything here needs git, make and Python 3.11 or newer, and nothing else that is installed by hand.
# `make PYTHON=/path/to/python3.12 …` chooses another interpreter for the virtual environment.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3.11)
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
INSTALLED := $(VENV)/.installed
LOCKED := $(VENV)/.locked
PACKAGE_PARENTS := operator crds approvals agent_runtime console cli

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help venv demo test verify format crds docs lock bench profile clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

venv: $(INSTALLED) ## make .venv with everything that requirements.lock names

# uv itself comes from the lock too, hash included. Where uv cannot reach an index (it does not read pip's
# configuration), pip installs the same locked set, only slower.
$(LOCKED): $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Sayso needs Python 3.11 or newer, and '$(PYTHON)' is not: install python3.11," \
	       "or name one with 'make PYTHON=/path/to/python3.11 …'." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module" \
	       "(on Debian and Ubuntu the package python3.11-venv) and run make again." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@awk '/^[^ ]/ {wanted = /^uv==/} wanted' $(LOCK) > $(VENV)/uv.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(LOCK) || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

demo: venv ## watch an agent ask for a say-so, give it, and see exactly that call run
	@$(BIN)/python examples/refund-desk/demo.py

test: venv ## run all tests, with branch coverage
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

verify: venv ## check style, types, import rules and that generated files are fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks tools
	$(BIN)/lint-imports
	$(BIN)/python -m sayso_api.crds --check crds/manifests
	$(BIN)/python tools/gen_docs.py --check
	@for parent in $(PACKAGE_PARENTS); do \
	  if [ -e $$parent/__init__.py ]; then \
	    echo "$$parent/__init__.py must not exist: '$$parent' would become a package that hides another" >&2; \
	    exit 1; \
	  fi; \
	done

format: venv ## put the code into the one format and repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: venv ## write crds/manifests from the API types
	$(BIN)/python -m sayso_api.crds crds/manifests

docs: venv ## write docs/reference from the code
	$(BIN)/python tools/gen_docs.py

# A requirements file with hashes is the lock, and not uv's own, because it names no registry's host.
lock: venv ## choose versions anew where pyproject.toml asks for it, and write requirements.lock
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes \
	  --no-emit-index-url --no-header --quiet -o $(LOCK)

bench: venv ## measure Sayso beside bare ADK and ADK's to_a2a; writes benchmarks/results
	@$(BIN)/python -m benchmarks

profile: venv ## show where Sayso's time goes; writes the table of docs/performance.md
	@$(BIN)/python -m benchmarks --profile

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage* dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
