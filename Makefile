# The commands of this project. Only `python3` (3.9 or newer) is needed, but for what the client or the linters take part in.
PYTHON ?= python3
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/toolcall-hooks
LINT := $(CACHE)/lint-ruff0.17.6-mypy2.4.1
RECOVER := $(PYTHON) recover_malformed_toolcall.py

.PHONY: install status uninstall demo test lint e2e compat validate bench fuzz mutate picture

install: ## copy both hooks into the config folder, register them, and prove that they work
	$(RECOVER) install
	$(RECOVER) status

status: ## what is installed, the proof, the record
	$(RECOVER) status

uninstall: ## take out all of it
	$(RECOVER) uninstall

demo: ## see both hooks at work, without the client
	$(PYTHON) tests/demo.py

test: ## unit and process tests, no network
	$(PYTHON) -m unittest discover -s tests

e2e: ## the tests against the real client, on the versions in CLIENT_VERSIONS (needs npm, node, tmux)
	$(PYTHON) -m unittest discover -s tests/e2e

compat: ## the same over all pinned client versions, as a table
	$(PYTHON) tests/compat.py

validate: ## the client's own check of the plugin
	$(PYTHON) tests/e2e/harness.py plugin validate .

bench: ## what a hook costs, beside a bare interpreter
	$(PYTHON) tests/bench.py

fuzz: ## 20,000 seeded cases, and the nastiest texts at 2 MB
	$(PYTHON) tests/fuzz.py --cases 20000
	GROWTH_BYTES=2000000 $(PYTHON) -m unittest discover -s tests -p test_masking.py -k Time

mutate: ## break each decision and see a test go red
	$(PYTHON) tests/mutate.py

picture: ## .github/before-after.svg from real screens of the client
	$(PYTHON) tests/picture.py

lint: $(LINT)
	$(LINT)/bin/python -m ruff check .
	$(LINT)/bin/python -m ruff format --check .
	$(LINT)/bin/python -m mypy *.py tests/*.py
	$(LINT)/bin/python -m mypy tests/e2e/*.py

$(LINT):
	rm -rf $(LINT).new
	$(PYTHON) -m venv $(LINT).new
	$(LINT).new/bin/python -m pip install --quiet ruff==0.17.6 mypy==2.4.1
	mv $(LINT).new $(LINT)
