# Two commands do everything: `make run` and `make test`. Both make their own environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
FUZZ_SECONDS ?= 300
# A file of tests stays in one process, which makes its fixtures once; conftest.py has the order.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Compiled tests and packages are kept, whatever the shell says: every process starts sooner.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test quick lowest fuzz docs dist tools lint types unit format hooks clean

help:  ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

run: $(STAMP)  ## the main job: campaigns on two included tables, one where networks beat counts and one where they do not
	$(BIN)/lpzero discover nano-rnn --out runs/nano-rnn --resume --jobs $(JOBS)
	@$(BIN)/lpzero report runs/nano-rnn
	$(BIN)/lpzero discover nano-gpt2 --generations 10 --out runs/nano-gpt2 --resume --jobs $(JOBS)
	@$(BIN)/lpzero report runs/nano-gpt2

test: lint  ## lint, types and every test, the slow ones too: what CI runs
	@$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(PYTEST) -rs; unit=$$?; \
	wait $$types; types=$$?; \
	echo 'mypy, which ran beside the tests:'; cat $(VENV)/types.txt; \
	test $$unit -eq 0 -a $$types -eq 0

quick: $(STAMP)  ## the tests that are not marked slow: under a minute on two idle cores
	$(PYTEST) -m 'not slow'

lowest:  ## the fast tests with the lowest declared version of every dependency that can be had
	$(PYTHON) .ci/lowest.py $(VENV)-lowest -n $(JOBS)

fuzz: $(STAMP)  ## coverage-guided fuzzing of every reader of untrusted files, FUZZ_SECONDS each
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

docs: $(STAMP)  ## the documentation's site in build/site; a broken link is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -b html . build/site
	@echo build/site/README.html

dist: $(STAMP)  ## the wheel and the sdist in dist, built and checked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/python .ci/dist.py

tools:  ## a browser, pdflatex and poppler for the tests that use them (apt, root; best effort)
	@.ci/tools

lint: $(STAMP)  ## ruff, rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict, on the three packages
	$(BIN)/mypy

unit: $(STAMP)  ## the tests (LPZERO_DATA=folder adds those on the real tables)
	$(PYTEST) -rs

format: $(STAMP)  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(STAMP)  ## run lint and types before every commit (needs pre-commit: pipx install pre-commit)
	@command -v pre-commit >/dev/null || { echo 'pre-commit is not installed: pipx install pre-commit' >&2; exit 1; }
	pre-commit install

clean:  ## remove the environment and every cache
	rm -rf $(VENV) $(VENV)-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info build dist
