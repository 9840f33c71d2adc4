# fullpipe's targets. `make demo` and `make test` do all the set-up that they need; `./demo` and
# `./test` install make first.

VENV := .venv
PYTHON := $(VENV)/bin/python
# What builds the module and what it needs, and all that tests and manual need besides.
BUILDERS := $(VENV)/.fullpipe-builders
TOOLS := $(VENV)/.fullpipe-tools
LOADED := $(VENV)/.fullpipe-loaded
# Recipes have no access to make's job server, so cargo must not look for it.
ALONE := env -u MAKEFLAGS -u MFLAGS
# Runs a command and keeps its CPU seconds for the summary of the tests.
STEP := scripts/step.sh
# Python keeps the bytecode that it compiles, also where the shell's environment forbids it.
export PYTHONDONTWRITEBYTECODE :=
DEMO_SYSTEM := build/.system-packages-demo
SYSTEM := build/.system-packages
TEST_SYSTEM := build/.system-packages-test

.PHONY: build man verdicts wheel demo test test-more test-all swarm golden quic test-quic test-cluster test-live \
	test-web lint format lock clean assets kernels docs differential

build: $(VENV)/bin/fullpipe assets

# What the engines vm and live need: the static agent, the eBPF objects, and the library that QEMU
# preloads.
ASSETS := python/fullpipe/assets
assets: | $(SYSTEM)
	mkdir -p $(ASSETS)
	$(STEP) "eBPF objects" bpf/build.sh $(ASSETS)
	$(STEP) "static agent" $(ALONE) crates/fullpipe-agent/build-static.sh $(ASSETS)
	qemu/build.sh $(ASSETS)

# dist/fullpipe-*.whl, which needs no compiler where it is installed, and the source distribution.
# With the interpreter of `build`, PyO3 is not configured for another one.
wheel: build
	rm -rf dist
	$(STEP) "wheel" $(ALONE) scripts/with_sources.sh $(VENV)/bin/maturin build --profile wheel --locked --quiet --interpreter $(PYTHON) --out dist
	if [ -e .git ]; then scripts/with_sources.sh $(VENV)/bin/maturin sdist --out dist; fi

# Downloads Debian's kernels for the virtual machine into the user's cache.
kernels: build
	$(STEP) "kernels" $(VENV)/bin/fullpipe doctor --install

# System packages: installed if root, else named in one line. Checked again when packages changed. Those
# of the tests include those of the build, and these the demo's.
PACKAGES := scripts/system-packages.sh $(wildcard /var/lib/dpkg/status)
$(DEMO_SYSTEM): $(PACKAGES)
	@mkdir -p $(@D)
	@$(STEP) "system packages" scripts/system-packages.sh demo
	@touch $@

$(SYSTEM): $(PACKAGES)
	@mkdir -p $(@D)
	@$(STEP) "system packages" scripts/system-packages.sh build
	@touch $(DEMO_SYSTEM) $@

$(TEST_SYSTEM): $(PACKAGES)
	@mkdir -p $(@D)
	@$(STEP) "system packages" scripts/system-packages.sh test
	@touch $(DEMO_SYSTEM) $(SYSTEM) $@

$(BUILDERS): requirements-build.lock | $(DEMO_SYSTEM)
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(STEP) "pip" $(PYTHON) -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

$(TOOLS): requirements.lock | $(BUILDERS)
	$(STEP) "pip" $(PYTHON) -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

$(VENV)/bin/fullpipe: $(BUILDERS) FORCE
	$(STEP) "release module" $(ALONE) VIRTUAL_ENV=$(abspath $(VENV)) PIP_QUIET=1 \
		$(VENV)/bin/maturin develop --release --locked --quiet $(if $(wildcard $@),--skip-install)

# Compiles the modules of the libraries that fullpipe loads, once for all workers of the tests.
$(LOADED): $(TOOLS) | $(VENV)/bin/fullpipe
	$(STEP) "bytecode" $(PYTHON) -m compileall -q python/fullpipe
	$(STEP) "bytecode" $(PYTHON) scripts/load_libraries.py
	touch $@

FORCE:

# Builds and downloads what the simulator needs; `fullpipe doctor --install`, or the first run with
# --engine vm, adds the rest.
demo: $(VENV)/bin/fullpipe
	rm -rf build/demo
	$(STEP) "demo" $(VENV)/bin/fullpipe run scenarios/demo.toml --out build/demo
	@echo "Open build/demo/report.html in a browser."

# The papers' figures and verdicts: runs the catalogue with the papers' durations and repetitions, what
# the simulator contradicts in the virtual machine too, and writes docs/evidence. Some five CPU hours;
# Ctrl-C keeps what ended. `make verdicts SIZE=` takes the short runs, an hour on two cores.
SIZE := --full
verdicts: build
	$(VENV)/bin/fullpipe experiment run --all $(SIZE) --confirm --out build/verdicts.html
	$(VENV)/bin/fullpipe experiment report --all $(SIZE) $(if $(SIZE),--or-short) --out build/verdicts.html --evidence docs/evidence \
		--note "Runs are of the simulator as built from commit $$(git rev-parse --short=8 HEAD) ($$(date '+%-d %B %Y'))."
	$(PYTHON) scripts/results.py

# Writes the manual. A warning, such as a broken link, is an error.
docs: $(TOOLS) $(VENV)/bin/fullpipe
	$(STEP) "manual" $(PYTHON) -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "Open build/docs/index.html in a browser."

# Manual pages (man(7)) of all commands in build/man/man1, for those who package fullpipe.
man: build
	$(PYTHON) scripts/man_pages.py build/man/man1

# The tests have two tiers. `make test` is what every change must pass: all that is fast, and of what
# is slow (machines, browsers) one of each kind, marked `smoke`. `make test-all` runs everything.
# Rust's tests are not optimised and detect overflows; they take the crates of others from the module,
# which is built first (.cargo/tests.toml). PyO3 would be compiled again for another interpreter than
# maturin names. Clippy runs as the compiler, so crates are compiled once instead of twice. The reader of
# qlog has no tests and 13 crates of its own: the second tier compiles it where it runs it. Python's tests
# run beside them, with one worker more than cores, since some wait for a path or a browser; the tests of
# a file run on one worker (tests/python/conftest.py).
RUST_TESTS := --release --config .cargo/tests.toml --workspace --exclude fullpipe-qlog-check \
	--locked --quiet --lib --bins --tests
SIGNATURE := import sys; print("%s-%d.%d-%dbit" % (sys.implementation.name, *sys.version_info[:2], sys.maxsize.bit_length() + 1))
OF_MODULE = PYO3_PYTHON=$(abspath $(PYTHON)) PYO3_ENVIRONMENT_SIGNATURE="$$($(PYTHON) -c '$(SIGNATURE)')"
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ CARGO_INCREMENTAL=0
SUMMARY := build/test-summary
FIRST_TIER := not (vm or live or browser or hostile or slow) or smoke
PYTEST := $(ALONE) $(LINTED) $(PYTHON) -m pytest --numprocesses $$(($$(nproc) + 1)) \
	--dist loadscope --no-loadscope-reorder --summary-file=$(SUMMARY)
test: $(VENV)/bin/fullpipe | $(TEST_SYSTEM)
	$(MAKE) --no-print-directory --jobs 2 rust-tests python-tests
	@scripts/tests_passed.sh first

.PHONY: format-check types rust-tests python-tests
rust-tests: c-and-rust-format-check
	$(STEP) "compiling Rust's tests" $(ALONE) $(LINTED) $(OF_MODULE) cargo test $(RUST_TESTS) --no-run
	$(STEP) "Rust's tests" $(ALONE) $(LINTED) $(OF_MODULE) cargo test $(RUST_TESTS)
	$(STEP) "tests of C" tests/cc/run.sh

python-tests: python-format-check types
	$(MAKE) --no-print-directory kernels $(LOADED)
	$(STEP) "Python's tests" $(PYTEST) -m "$(FIRST_TIER)"

# Python's tests of the second tier: kernels, live paths, browsers, hostile files, notebooks, the wheel.
test-more: $(LOADED) | $(TEST_SYSTEM)
	$(MAKE) --no-print-directory kernels wheel docs
	$(STEP) "Clippy of benches" $(ALONE) cargo clippy --benches --locked --quiet -p fullpipe-element-bench -- -D warnings
	$(STEP) "Python's tests, second tier" $(PYTEST) -m "not ($(FIRST_TIER))"

# Everything, on one machine. CI and the workflow run these targets apart.
test-all: test test-more test-web test-live test-quic test-cluster
	$(MAKE) --no-print-directory swarm SECONDS=300
	@scripts/tests_passed.sh all

# The digests of runs that tests/python/test_golden.py compares with: for a change of behaviour that is
# meant.
golden: $(VENV)/bin/fullpipe $(TOOLS)
	$(PYTHON) tests/python/golden.py rewrite

# Random scenarios for so long, such as `make swarm SECONDS=28800`, then damaged input for about as long
# again, then the property tests; `make test` has some hundred cases of each, the same each time. Here
# they are others each time. What fails is printed with what repeats it: of the property tests of Rust
# PROPTEST_RNG_SEED, which is FIRST.
SECONDS := 3600
FIRST := $(shell date +%s)000
DRAWN := $(shell grep -l '^from hypothesis' tests/python/test_*.py)
swarm: build $(TOOLS)
	status=0; \
	$(PYTHON) tests/swarm/run.py --first $(FIRST) --seconds $(SECONDS) || status=1; \
	FULLPIPE_DRAW_FREELY=1 FULLPIPE_FUZZ_EXAMPLES=$$(($(SECONDS) * 8)) \
		$(PYTHON) -m pytest --numprocesses $$(nproc) $(DRAWN) || status=1; \
	export PROPTEST_RNG_SEED=$(FIRST); \
	PROPTEST_CASES=$$(($(SECONDS) * 50)) $(ALONE) \
		cargo test --locked --quiet -p fullpipe-plan -p fullpipe-agent || status=1; \
	$(ALONE) cargo test --locked --quiet -p fullpipe-cc -p fullpipe-net -p fullpipe-sim || status=1; \
	exit $$status

# The simulator's TCP beside the sockets of three kernels, event by event. Scripts are others each time;
# the seed that is printed repeats them.
SCRIPTS := 1000
differential: kernels
	status=0; seed=$$(date +%s); \
	for kernel in 6.1 6.12 7.3; do \
		echo "Linux $$kernel, seed $$seed"; \
		$(VENV)/bin/fullpipe differential --kernel $$kernel --scripts $(SCRIPTS) --seed $$seed \
			--least 95 || status=1; \
	done; exit $$status

# Tests that need Ray, in an environment of their own: nothing else uses its 270 MB, so it is not in
# requirements.lock. On a slow machine Ray's node starts later than its default limit.
CLUSTER := build/cluster
test-cluster: build $(TOOLS)
	python3 -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet --disable-pip-version-check 'ray>=2.40'
	$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(ls -d $(CLUSTER)/lib/python3*/site-packages)/fullpipe-libraries.pth"
	echo "$(abspath python)" > "$$(ls -d $(CLUSTER)/lib/python3*/site-packages)/fullpipe.pth"
	RAY_raylet_start_wait_time_s=300 RAY_AUTH_MODE=token \
		RAY_AUTH_TOKEN=$$($(PYTHON) -c 'import secrets; print(secrets.token_hex(32))') \
		$(CLUSTER)/bin/python -m pytest tests/cluster

# QUIC stacks for the simulator: the modules fullpipe_quic, fullpipe_quiche and fullpipe_ngtcp2. A workspace
# of its own, so that nothing else is built with TLS. Takes fourteen CPU minutes. ngtcp2-sys asks for Rust
# 1.96 and builds with 1.95.
QUIC := crates/fullpipe-quic
quic: build $(TOOLS)
	cd $(QUIC) && for module in . quiche ngtcp2; do \
		$(ALONE) VIRTUAL_ENV=$(abspath $(VENV)) PIP_QUIET=1 $(abspath $(VENV))/bin/maturin develop \
			--release --locked --ignore-rust-version --quiet --manifest-path $$module/Cargo.toml || exit; \
	done

# Tests of the QUIC stacks, and of our algorithms in them, which the others skip. Each stack has to build
# without the others.
UDP := --release --locked --quiet --no-default-features --features quinn,noq --example udp
test-quic: quic
	cd $(QUIC) && cargo fmt --all --check && for module in . quiche ngtcp2; do \
		$(ALONE) cargo clippy --manifest-path $$module/Cargo.toml \
			--release --locked --ignore-rust-version --quiet -- -D warnings || exit; \
	done
	cd $(QUIC) && for stack in quinn noq s2n tquic; do \
		$(ALONE) cargo clippy --release --locked --quiet --no-default-features --features $$stack -- -D warnings \
			|| exit; \
	done
	cd $(QUIC) && $(ALONE) cargo clippy $(UDP) -- -D warnings && $(ALONE) cargo build $(UDP)
	cd $(QUIC)-cc && cargo fmt --all --check
	cd $(QUIC)-cc && $(ALONE) cargo clippy --workspace --all-targets --all-features --locked --quiet -- -D warnings
	cd $(QUIC)-cc && $(ALONE) cargo test --workspace --all-features --locked --quiet
	$(ALONE) scripts/crates.sh target/crates
	$(PYTHON) -m pytest tests/quic

# Pages loaded by curl from lighttpd in the virtual machine. Not part of `make test`: Debian starts a
# web server where lighttpd is installed.
test-web: kernels $(TOOLS)
	$(PYTHON) -m pytest tests/web

# Engine live on a kernel that has netem and all queue disciplines, for hosts whose kernel lacks
# them: in a virtual machine with this host's files. Needs root; takes two CPU minutes.
test-live: kernels $(TOOLS) | $(TEST_SYSTEM)
	$(PYTHON) scripts/in_machine.py --own-time -- \
		$(PYTHON) -m pytest -p no:cacheprovider tests/python/test_live_paths.py

lint: format-check types
	$(ALONE) cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

.PHONY: c-and-rust-format-check python-format-check
C_FILES := cc/*.h cc/*.c bpf/*.h bpf/*.c module/*.h module/*.c module/linux/*.h module/linux/*.c qemu/*.c \
	crates/fullpipe-quic/ngtcp2/src/*.c
format-check: c-and-rust-format-check python-format-check

c-and-rust-format-check: | $(TEST_SYSTEM)
	clang-format --dry-run -Werror $(C_FILES)
	cargo fmt --all --check

python-format-check: $(TOOLS)
	$(PYTHON) scripts/lint_prose.py
	$(VENV)/bin/reuse lint --quiet
	$(PYTHON) scripts/notices.py --check
	$(VENV)/bin/ruff check python tests benches examples scripts
	$(VENV)/bin/ruff format --check python tests benches examples scripts

types: $(TOOLS)
	$(VENV)/bin/mypy
	PYTHONPATH=python $(VENV)/bin/lint-imports # works before the module is built

format: $(TOOLS) | $(TEST_SYSTEM)
	clang-format -i $(C_FILES)
	cargo fmt --all
	$(VENV)/bin/ruff check --fix python tests benches examples scripts
	$(VENV)/bin/ruff format python tests benches examples scripts

# Pins versions with hashes, without addresses of package indexes.
PIN := $(VENV)/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-header --python-version 3.11 pyproject.toml requirements-build.in
lock: $(TOOLS)
	$(PYTHON) -m pip install --quiet uv
	$(PIN) requirements-tools.in -o requirements.lock
	$(PIN) --constraint requirements.lock -o requirements-build.lock

clean:
	rm -rf build dist target $(VENV) $(ASSETS) python/fullpipe/*.so
