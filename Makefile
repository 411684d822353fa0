# Everything here sets itself up: a fresh machine needs Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
SEEDS ?= 10000

.PHONY: help setup demo simulate test test-real test-all test-wheel lint format bench lock clean

help: ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with everything, from the lock file

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@command -v uv >/dev/null || test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	@UV=$$(command -v uv || echo $(BIN)/uv); \
	$$UV pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock && \
	$$UV pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY) ## a room in your browser with a persona that answers
	$(BIN)/sentinel demo

test: $(READY) ## all tests that need nothing but this machine
	$(BIN)/python -m pytest -q -m "not real"

test-real: $(READY) ## the real executors and the real browser; installs what is missing
	bash tests/real/install.sh
	$(BIN)/python -m pytest -q -m real

test-all: test test-real ## both

simulate: $(READY) ## worlds where everything fails, 10,000 of them; one with its trace: make simulate SEED=123
	$(BIN)/python -m tests.simulation $(if $(SEED),$(SEED),--seeds $(SEEDS))

test-wheel: $(READY) ## the tests once more, against the built wheel, from another directory
	bash tests/wheel.sh $(CURDIR)/$(BIN)/python

lint: $(READY) ## ruff, pyright strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure, as ratios within one run; writes bench/results.json
	$(BIN)/python -m bench

lock: $(READY) ## resolve the lock file anew, from releases at least a week old
	@UV=$$(command -v uv || echo $(BIN)/uv); \
	$$UV pip compile pyproject.toml --all-extras --group test --group lint --group build --universal --generate-hashes \
	  --exclude-newer "$$($(BIN)/python -c 'import datetime as d; print(d.date.today() - d.timedelta(days=7))')" \
	  --no-emit-index-url --no-header --python-version 3.11 --upgrade --output-file requirements.lock

clean: ## remove the environment and what the tools left
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
