# Every target sets up by itself what it needs; the second time it starts at once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help venv lab demo test test-fast book clean
.DEFAULT_GOAL := help

help:
	@echo "make lab        set up and open JupyterLab on puzzle 1"
	@echo "make demo       set up and do the main job headless: solve, check and draw puzzle 1 into build/demo/index.html"
	@echo "make test       set up and run every check that CI runs"
	@echo "make test-fast  the quick part of it"
	@echo "make book       build the book into build/book/"
	@echo "make venv       only set up .venv"

venv:
	@$(PYTHON) .ci/environment.py

lab: venv
	@$(BIN)/tilelab lab

demo: venv
	@$(BIN)/python .ci/demo.py

test: venv
	@$(BIN)/python .ci/check.py

test-fast: venv
	@$(BIN)/python .ci/check.py --fast

book: venv
	@$(BIN)/tilelab book build

clean:
	rm -rf build dist
