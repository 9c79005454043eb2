# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_PYTHON_DOWNLOADS := never
export UV_LINK_MODE := copy
export PIP_DISABLE_PIP_VERSION_CHECK := 1

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

# --- environment ---------------------------------------------------------------------------------
# The stamps remember which lock the environment holds. The dev lock contains the runtime lock with
# the same versions, so an environment for tests also serves `make run`.

$(BIN)/uv: requirements-uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-uv.lock
	@touch $@

.PHONY: venv venv-run
venv: $(VENV)/dev.stamp ## Make .venv with everything the tests need

$(VENV)/dev.stamp: requirements-dev.lock $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/run.stamp

venv-run: $(VENV)/run.stamp

$(VENV)/run.stamp: requirements.lock $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/dev.stamp && touch $@

.PHONY: lock
lock: $(BIN)/uv ## Resolve the dependencies anew into the hashed lock files
	$(COMPILE) pyproject.toml --extra service --group build -o requirements.lock
	$(COMPILE) pyproject.toml --extra service --group dev -c requirements.lock -o requirements-dev.lock
