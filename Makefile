# make test : the whole suite in a virtual environment made here, by WORKERS processes
# make demo : the loop, end to end, through a real MCP client over stdio
# make check: lint and types
# make native: the verifier compiled, for this interpreter; its Python runs again after any change to it
# make probe: which instructions each target's assembler takes, derived again and compared with our tables

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.cake-installed
WORKERS ?= 2

.PHONY: test demo check native probe install clean

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] else "cake needs Python 3.11 or newer, found " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[dev]'
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

demo: $(STAMP)
	$(BIN)/python -m cake_mcp.demo

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright

native: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[native]'
	$(BIN)/python -m cake_verify.native

probe: $(STAMP)
	$(BIN)/python -m cake_backend.toolchain.probe

clean:
	rm -rf $(VENV) build dist *.egg-info
