# make test : the whole suite in a virtual environment made here
# make demo : the loop, end to end, through a real MCP client over stdio
# make check: lint and types

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.cake-installed

.PHONY: test demo check install clean

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] else "cake needs Python 3.11 or newer, found " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[dev]'
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/python -m pytest

demo: $(STAMP)
	$(BIN)/python -m cake_mcp.demo

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright

clean:
	rm -rf $(VENV) build dist *.egg-info
