# Aliases only; the work is in manage.py and platform/scripts.
.DEFAULT_GOAL := help
.PHONY: help up dev down unit test test-deep check format bench

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

up: ## install, start everything, stream one completion (ARGS=--detach: in the background)
	@python3 platform/scripts/setup && exec .venv/bin/python manage.py up $(ARGS)

dev: ## like `up`, and restart the processes whose code you edit: see CONTRIBUTING.md
	@python3 platform/scripts/setup --dev && exec env CARET_RELOAD=True .venv/bin/python manage.py up $(ARGS)

down: ## stop everything that `make up` started
	@if [ -x .venv/bin/python ]; then exec .venv/bin/python manage.py down; else echo "Caret is not installed here."; fi

unit: ## run checks and unit tests in the light environment, in minutes
	@exec platform/scripts/check --light

test: ## run static checks and the default suite (ARGS: for pytest)
	@exec platform/scripts/test $(ARGS)

test-deep: ## run random and long tests, and faults under load (CARET_TEST_SEED=N: repeat a run)
	@exec platform/scripts/test --deep $(ARGS)

check: ## check format, lint, types, architecture, migrations and unit tests
	@exec platform/scripts/check

format: ## format the code
	@exec platform/scripts/format

bench: ## measure the README's figures, as JSON lines
	@exec platform/scripts/bench $(ARGS)
