# Aliases only; the work is in manage.py and platform/scripts.
.DEFAULT_GOAL := help
.PHONY: help up dev down unit test test-deep check format bench

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

up: ## install, start everything, stream one completion (ARGS=--detach: in the background)
	@python3 platform/scripts/setup && exec .venv/bin/python manage.py up $(ARGS)

dev: ## like `up`, and restarts what you edit: see CONTRIBUTING.md
	@python3 platform/scripts/setup --dev && exec env CARET_RELOAD=True .venv/bin/python manage.py up $(ARGS)

down: ## stop everything that `make up` has started
	@if [ -x .venv/bin/python ]; then exec .venv/bin/python manage.py down; else echo "Caret is not installed here."; fi

unit: ## checks and unit tests in the light environment, in minutes
	@exec platform/scripts/check --light

test: ## static checks and the default suite (ARGS: for pytest)
	@exec platform/scripts/test $(ARGS)

test-deep: ## random and long tests, faults under load (CARET_TEST_SEED=N: repeat a run)
	@exec platform/scripts/test --deep $(ARGS)

check: ## format, lint, types, architecture, migrations, unit tests
	@exec platform/scripts/check

format: ## put the code into its form
	@exec platform/scripts/format

bench: ## the figures of the README, as JSON lines
	@exec platform/scripts/bench $(ARGS)
