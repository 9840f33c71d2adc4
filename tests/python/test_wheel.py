"""The wheel, installed where there is no compiler, no network and no checkout, does what a checkout
does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.installed import shipped
from fullpipe.engines.vm import hardware

#: `make wheel` takes a minute; `make test-more` does it.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WHEELS = sorted((ROOT / "dist").glob("fullpipe-*.whl"))

SCENARIO = """
duration = "2s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "bbr3"
"""


SWEEP = """
[scenario]
duration = "2s"
path = { rate = "10mbit", rtt = "{rtt}", buffer = "1bdp" }
flow = [{ cc = "bbr3" }]
[axis]
rtt = ["10ms", "20ms"]
"""


class Installed:
    """A new virtual environment with the wheel; libraries are those of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
             "--prefix", str(folder / "venv"), "--ignore-installed", str(WHEELS[-1])],
            check=True,
        )  # fmt: skip
        # A plain path, not a site folder: the link to the checkout that lies there is not followed.
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.programs = folder / "programs"
        self.programs.mkdir()

    def run(self, *words: str) -> str:
        """What `fullpipe` prints with a PATH of `programs` alone, without a network where this
        user may have none."""
        unshare = shutil.which("unshare") if os.geteuid() == 0 else None
        alone = [unshare, "--net"] if unshare else []
        done = subprocess.run(
            [*alone, *self._command(words)],
            capture_output=True, text=True, check=False, **self._where,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The same under way, and with the loopback device, which a server needs."""
        return subprocess.Popen(
            self._command(words), stderr=subprocess.PIPE, text=True, **self._where
        )

    def _command(self, words: Sequence[str]) -> list[str]:
        python = str(self.folder / "venv" / "bin" / "python")
        code = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"
        return [python, "-c", code, *words]

    @property
    def _where(self) -> dict[str, Any]:
        env = {"PATH": str(self.programs), "HOME": os.environ.get("HOME", "/")}
        return {"cwd": self.folder, "env": env}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    assert WHEELS, "no wheel in dist/: `make wheel` builds it"
    made = Installed(tmp_path_factory.mktemp("elsewhere"))
    (made.folder / "scenario.toml").write_text(SCENARIO)
    return made


def test_the_source_distribution_holds_what_it_is_built_from_and_nothing_built() -> None:
    (file,) = (ROOT / "dist").glob("fullpipe-*.tar.gz")
    with tarfile.open(file) as opened:
        top, names = "", set[str]()
        for member in opened:
            top, _, name = member.name.partition("/")
            names.add(name)
    assert top == file.name.removesuffix(".tar.gz")
    needed = {"pyproject.toml", "Cargo.toml", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT",
              "README.md", "cc/cc.h", "cc/registry.h", "cc/LICENSE-BSD-3-Clause",
              "python/fullpipe/serve/page.js", "python/fullpipe/assets/cc/bbr3.h",
              "python/fullpipe/assets/commit"}  # fmt: skip
    needed |= {"Makefile", "REUSE.toml", "THIRD-PARTY-NOTICES.txt", "tests/python/test_wheel.py"}
    crates = {path.name for path in (ROOT / "crates").glob("*/")}
    needed |= {f"crates/{name}/Cargo.toml" for name in crates}
    needed |= {f"python/fullpipe/assets/experiments/{path.name}"
               for path in (ROOT / "experiments").glob("*.toml")}  # fmt: skip
    assert needed <= names, sorted(needed - names)
    assert not [name for name in names if name.endswith((".so", ".o", ".whl", "fullpipe-agent"))]


def test_its_metadata_have_the_version_that_it_says_and_the_commit_that_it_was_built_from(
    installed: Installed,
) -> None:
    (metadata,) = [
        name
        for name in zipfile.ZipFile(WHEELS[-1]).namelist()
        if name.endswith(".dist-info/METADATA")
    ]
    text = zipfile.ZipFile(WHEELS[-1]).read(metadata).decode()
    version = next(line for line in text.splitlines() if line.startswith("Version: "))[9:]
    said = installed.run("--version").split()[1]
    assert said.partition("+")[0] == version
    assert (".dev" in version) == ("+" in said)


def test_a_run_and_its_report_need_nothing_else(installed: Installed) -> None:
    out = installed.folder / "recording"
    installed.run("run", "scenario.toml", "--out", str(out), "--no-report")
    installed.run("report", str(out), "--out", str(installed.folder / "page.html"))
    assert (installed.folder / "page.html").stat().st_size > 100_000
    # A source distribution is no repository, and holds the commit that it was made from.
    carried = ROOT / "python/fullpipe/assets/commit"
    commit = carried.read_text().strip() if carried.is_file() else subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()  # fmt: skip
    assert f'"git_commit": "{commit}' in (out / "metadata.json").read_text()


def test_it_holds_the_catalogue_the_algorithms_and_what_kernels_need(installed: Installed) -> None:
    listed = installed.run("experiment", "list")
    assert "sarpkaya2025_fig2_share_bbr1" in listed and "bless2025_table1" in listed
    names = set(zipfile.ZipFile(WHEELS[-1]).namelist())
    for folder in ("experiments", "scorecard", "cc", "bpf", "examples"):
        ours = {path.name for path in shipped(folder).rglob("*") if path.is_file()}
        theirs = {Path(name).name for name in names if f"assets/{folder}/" in name}
        assert theirs == ours, folder
    for name in ("fullpipe-agent", "turnstile.so", "bbr3.bpf.o", "kernel-cubic.o", "sockets.o"):
        assert f"fullpipe/assets/{name}" in names
    agent = next((installed.folder / "venv").glob("lib/*/site-packages/fullpipe/assets/*-agent"))
    assert os.access(agent, os.X_OK)


def test_a_file_of_ones_own_is_written_run_and_checked_from_it(installed: Installed) -> None:
    for name in ("cc", "ld", "as", "objdump", "clang"):
        found = shutil.which(name)
        assert found is not None, name
        (installed.programs / name).symlink_to(found)
    installed.run("cc", "new", "mine")
    installed.run("run", "scenario.toml", "--cc", "./mine.h", "--out", "own", "--no-report")
    assert '"mine.h": "/* SPDX' in (installed.folder / "own" / "metadata.json").read_text()
    said = installed.run("cc", "check", "./mine.h", "--kernels", "")
    assert "holds     undefined behaviour" in said and "holds     compiles for eBPF" in said


def test_a_sweep_and_an_experiment_run_from_it(installed: Installed) -> None:
    (installed.folder / "sweep.toml").write_text(SWEEP)
    installed.run("sweep", "sweep.toml", "--jobs", "2", "--out", "store")
    answer = installed.run("query", "store", "select count(*) as n from runs where goodput_bps > 0")
    assert "2" in answer.split()
    name = "ahsan2025a_ecn_threshold"
    words = ["--repeat", "1", "--once", "--store", "runs", "--out", "verdicts.html"]
    assert name in installed.run("experiment", "run", name, *words)
    assert (installed.folder / "verdicts.html").is_file()


def test_the_page_is_served_from_it(installed: Installed) -> None:
    process = installed.start("serve")
    try:
        assert process.stderr is not None
        link = process.stderr.readline().split()[-1]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"<title>fullpipe" in opener.open(link).read()
        script = urllib.parse.urljoin(link, "/files/page.js")
        assert b"/api/run" in opener.open(script).read()
    finally:
        process.terminate()
        process.wait()


@pytest.mark.vm
def test_the_virtual_machine_runs_from_it(installed: Installed) -> None:
    qemu = shutil.which(hardware.PROGRAM)
    assert qemu is not None
    (installed.programs / hardware.PROGRAM).symlink_to(qemu)
    installed.run("run", "scenario.toml", "--engine", "vm", "--out", "vm", "--no-report")
    assert (installed.folder / "vm" / "flows.parquet").is_file()
