# make demo    installs the base package and runs the main job
# make test    installs every extra and passes the tests
# make lint    ruff, mypy, import-linter
# make servers starts the database servers of the tests, for work by hand
# make suite   runs the conformance suite against a real server: make suite URL=qdrant+http://host
PYTHON ?= python3
BIN := .venv/bin
# Two cores are shared: one thread per library in tests.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test lint format peers servers suite clean

.venv/base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/dev: .venv/base
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	touch $@

.venv/peers: .venv/dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[peers]'
	touch $@

demo: .venv/base
	$(BIN)/isthmus demo

test: .venv/dev
	$(THREADS) $(BIN)/python -m pytest

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

peers: .venv/peers

servers: .venv/dev
	$(BIN)/python -m tests.servers

suite: .venv/dev
	$(BIN)/python tools/store_suite.py '$(URL)'

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
