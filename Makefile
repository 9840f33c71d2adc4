# fullpipe's targets. `make demo` and `make test` do all the set-up that they need.

VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.fullpipe-requirements
LOADED := $(VENV)/.fullpipe-loaded
# Without an outer make's jobs: cargo would look for them in vain.
ALONE := env -u MAKEFLAGS -u MFLAGS
# What is compiled when it is first imported is kept, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
SYSTEM := build/.system-packages

.PHONY: build wheel demo test test-cluster test-live lint format lock clean assets kernels docs

build: $(VENV)/bin/fullpipe $(LOADED) assets

# What the kernel engines bring along: the static agent, the eBPF objects, and what QEMU preloads.
# Beside them a wheel has the catalogue and the sources of the algorithms.
ASSETS := python/fullpipe/assets
assets: | $(SYSTEM)
	mkdir -p $(ASSETS)
	bpf/build.sh $(ASSETS)
	$(ALONE) crates/fullpipe-agent/build-static.sh $(ASSETS)
	qemu/build.sh $(ASSETS)

# dist/fullpipe-*.whl, which needs no compiler where it is installed, and the source distribution.
# The module in it is that of `build`: asked for by the same interpreter, PyO3 is not compiled anew.
SHIPPED := experiments flent_tests scorecard cc bpf
wheel: build
	rm -rf dist $(addprefix $(ASSETS)/,$(SHIPPED))
	cp -r $(SHIPPED) $(ASSETS)
	$(ALONE) $(VENV)/bin/maturin build --release --locked --quiet --interpreter $(PYTHON) --out dist
	$(VENV)/bin/maturin sdist --out dist
	rm -rf $(addprefix $(ASSETS)/,$(SHIPPED))

# Debian's kernels for the virtual machine, unpacked into the user's cache.
kernels: build
	$(VENV)/bin/fullpipe doctor --mend

# System packages: installed when root, else named all at once. Asked again when packages changed.
$(SYSTEM): scripts/system-packages.sh $(wildcard /var/lib/dpkg/status)
	@scripts/system-packages.sh
	@mkdir -p $(@D)
	@touch $@

$(STAMP): requirements.lock | $(SYSTEM)
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

$(VENV)/bin/fullpipe: $(STAMP) FORCE
	$(ALONE) VIRTUAL_ENV=$(abspath $(VENV)) \
		$(VENV)/bin/maturin develop --release --locked --quiet --skip-install
	test -x $@ || $(ALONE) VIRTUAL_ENV=$(abspath $(VENV)) \
		$(VENV)/bin/maturin develop --release --locked --quiet
	$(PYTHON) -m compileall -q python/fullpipe

# What it loads of the libraries is kept compiled from here on, also where a shell forbids that.
$(LOADED): $(STAMP) | $(VENV)/bin/fullpipe
	$(PYTHON) scripts/load_libraries.py
	touch $@

FORCE:

# Its environment and the module are made beside the assets, which need no Python.
demo:
	$(MAKE) --no-print-directory --jobs 2 kernels
	rm -rf build/demo
	$(VENV)/bin/fullpipe run scenarios/demo.toml --out build/demo
	@echo "Open build/demo/report.html in a browser."

# The reference of the Python API, of its docstrings.
docs: build
	$(PYTHON) scripts/api_reference.py build/docs
	@echo "Open build/docs/fullpipe.html in a browser."

# Rust's tests are of the debug build: it finds overflows, compiles in less time, and they run for
# seconds. Clippy lints what it compiles for them, and beside it what they do not reach, which shares
# their libraries: linted apart, all would be read twice. Beside them, so that no core waits for what one
# alone can do, pip, the release build and Python's tests, which run on all cores, those of a file on one
# (tests/python/conftest.py); one worker more than cores, since some wait for a path or a browser.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ CARGO_INCREMENTAL=0
test: | $(SYSTEM)
	$(MAKE) --no-print-directory --jobs 2 rust-tests python-tests

.PHONY: format-check types rust-tests python-tests
rust-tests: c-and-rust-format-check
	$(ALONE) $(LINTED) cargo build --workspace --locked --quiet --lib --bins --bench elements
	$(ALONE) $(LINTED) cargo test --workspace --locked --quiet --tests
	tests/cc/run.sh

python-tests: python-format-check types
	$(MAKE) --no-print-directory kernels wheel docs
	$(ALONE) $(LINTED) $(PYTHON) -m pytest --numprocesses $$(($$(nproc) + 1)) \
		--dist loadscope --no-loadscope-reorder --durations 40

# What needs Ray, in an environment of its own: 270 MB that nothing else uses are no part of
# requirements.lock. A slow machine needs longer than Ray waits for its node.
CLUSTER := build/cluster
test-cluster: build
	python3 -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet --disable-pip-version-check 'ray>=2.40'
	$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(ls -d $(CLUSTER)/lib/python3*/site-packages)/fullpipe-libraries.pth"
	echo "$(abspath python)" > "$$(ls -d $(CLUSTER)/lib/python3*/site-packages)/fullpipe.pth"
	RAY_raylet_start_wait_time_s=300 RAY_AUTH_MODE=token \
		RAY_AUTH_TOKEN=$$($(PYTHON) -c 'import secrets; print(secrets.token_hex(32))') \
		$(CLUSTER)/bin/python -m pytest tests/python/test_sweep_cluster.py

# Engine live on a kernel that has netem and all queue disciplines, where this host's has not: a
# machine with this host's files and a clock of its own, some two CPU minutes. As root.
test-live: kernels
	$(PYTHON) scripts/in_machine.py --own-time -- \
		$(PYTHON) -m pytest -p no:cacheprovider tests/python/test_live_paths.py

lint: format-check types
	$(ALONE) cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

.PHONY: c-and-rust-format-check python-format-check
format-check: c-and-rust-format-check python-format-check

c-and-rust-format-check: | $(SYSTEM)
	clang-format --dry-run -Werror cc/*.h cc/*.c bpf/*.h bpf/*.c qemu/*.c
	cargo fmt --all --check

python-format-check: $(STAMP)
	$(VENV)/bin/ruff check python tests benches examples scripts
	$(VENV)/bin/ruff format --check python tests benches examples scripts

types: $(STAMP)
	$(VENV)/bin/mypy

format: $(STAMP)
	clang-format -i cc/*.h cc/*.c bpf/*.h bpf/*.c qemu/*.c
	cargo fmt --all
	$(VENV)/bin/ruff check --fix python tests benches examples scripts
	$(VENV)/bin/ruff format python tests benches examples scripts

# Versions with hashes and without index addresses.
lock: $(STAMP)
	$(PYTHON) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --python-version 3.11 pyproject.toml requirements-tools.in -o requirements.lock

clean:
	rm -rf build dist target $(VENV) $(ASSETS) python/fullpipe/*.so
