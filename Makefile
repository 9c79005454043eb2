# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
LOCKS := requirements.lock requirements-dev.lock requirements-train.lock requirements-triton.lock
# Each lock keeps to the versions of the one before it. $(1) is the folder with those.
COMPILE_ALL = $(COMPILE) pyproject.toml --extra service --group build -o $(1)requirements.lock >/dev/null; \
	$(COMPILE) pyproject.toml --extra service --group dev -c $(1)requirements.lock -o $(1)requirements-dev.lock >/dev/null; \
	$(COMPILE) pyproject.toml --group train -c $(1)requirements-dev.lock -o $(1)requirements-train.lock >/dev/null; \
	$(COMPILE) pyproject.toml --group triton -o $(1)requirements-triton.lock >/dev/null

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# --- environment ---------------------------------------------------------------------------------
# The stamps remember which lock the environment holds. The dev lock contains the runtime lock with
# the same versions, so an environment for tests also serves `make run`.

$(BIN)/uv: requirements-uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-uv.lock
	@touch $@

.PHONY: venv venv-run
venv: $(VENV)/train.stamp ## Make .venv with everything the tests need
	@:

$(VENV)/dev.stamp: requirements-dev.lock $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/run.stamp

# Plain pip takes a build of torch for the CPU where the machine offers one; a lock could not.
$(VENV)/train.stamp: requirements-train.lock requirements-triton.lock requirements-torch.txt $(VENV)/dev.stamp
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirements requirements-train.lock
	$(BIN)/python -m pip install --quiet --quiet --requirement requirements-torch.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps --target $(VENV)/triton --requirements requirements-triton.lock
	@touch $@

venv-run: $(VENV)/run.stamp
	@:

$(VENV)/run.stamp: requirements.lock $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/dev.stamp && touch $@

.PHONY: lock
lock: $(BIN)/uv ## Resolve the dependencies anew into the hashed lock files
	@$(call COMPILE_ALL,)

# --- the service ---------------------------------------------------------------------------------
.PHONY: run
run: venv-run ## Install what the service needs and serve on loopback
	@exec $(BIN)/python -m app serve $(ARGS)

.PHONY: demo
demo: venv-run ## Post recorded runs to the server that `make run` started
	@exec $(BIN)/python -m app demo $(ARGS)

.PHONY: drill
drill: venv ## Live through replacements against doubles of Kubernetes and SageMaker, step by step
	@exec $(BIN)/python -m tests.drill $(ARGS)

.PHONY: migrate
migrate: venv-run ## Bring the database to this version's tables (`make run` does it by itself)
	@exec $(BIN)/python -m app migrate $(ARGS)

# --- judging -------------------------------------------------------------------------------------
.PHONY: test
test: venv system check ## Run everything: checks, then all tests on both databases
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: venv system ## Run the tests that take minutes: large fleets of real processes
	$(BIN)/python -m pytest -m slow $(ARGS)

.PHONY: system
system: # Install Chromium and PostgreSQL where they are missing.
	@tests/system-packages

.PHONY: check
check: check-lock check-python check-imports check-templates check-deploy ## Lint, types, import contracts, templates, compose file, locks

.PHONY: check-lock
check-lock: venv
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; cp $(LOCKS) "$$folder"; \
	$(call COMPILE_ALL,"$$folder"/); \
	sed -i "s|-c $$folder/|-c |" "$$folder"/*.lock; \
	for lock in $(LOCKS); do \
		cmp -s $$lock "$$folder/$$lock" || { diff $$lock "$$folder/$$lock" | head -20; echo "$$lock is not what pyproject.toml asks for: run \`make lock\`" >&2; exit 1; }; \
	done

.PHONY: check-python
check-python: venv
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary

.PHONY: check-imports
check-imports: venv
	@$(BIN)/lint-imports --no-logo --no-cache

.PHONY: check-templates
check-templates: venv
	$(BIN)/djlint --quiet --lint templates

.PHONY: check-deploy
check-deploy: venv
	POSTGRES_PASSWORD=checked $(BIN)/docker-compose -f docker-compose.yml config --quiet
	$(BIN)/kubernetes-validate --strict deploy/kubernetes.yaml >/dev/null

.PHONY: bench
bench: venv system ## Measure speed and memory, as ratios within one run
	@exec $(BIN)/python -m tests.bench $(ARGS)

.PHONY: fault-table
fault-table: venv ## Run every published fault on gloo processes and write docs/fault-table.md
	@exec $(BIN)/python -m witness.simulate --table --write docs/fault-table.md $(ARGS)

.PHONY: campaign
campaign: venv ## Inject a thousand faults, train 20,000 audited steps without one, write docs/campaign.md
	@exec $(BIN)/python -m witness.simulate.campaign --faults 1000 --clean 20000 --write docs/campaign.md $(ARGS)

.PHONY: format
format: venv ## Put the Python files and the table of settings into their one form
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .
	$(BIN)/python -m tests.tooling.settings_table
