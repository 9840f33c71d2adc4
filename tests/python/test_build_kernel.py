"""scripts/build_kernel.py: what is refused before anything is built, and what of a configuration it
finds missing, and what an interruption leaves. No kernel is built here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.vm import source
from helpers import await_ends
from repository_scripts import script

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_kernel.py"
PATCH = """--- a/net/ipv4/tcp_bbr.c
+++ b/net/ipv4/tcp_bbr.c
@@ -1,2 +1,2 @@
 first
-second
+third
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source with one file."""
    code = tmp_path / "tree" / "net" / "ipv4" / "tcp_bbr.c"
    code.parent.mkdir(parents=True)
    code.write_text("first\nsecond\n")
    return tmp_path / "tree"


def test_what_is_no_patch_ends_with_2_and_says_what_is(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("use v3\n")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--whole", "--patch", "notes"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "build_kernel: --patch notes: is no patch; must be what `git diff` writes\n"
    )


def test_a_patch_of_another_source_is_refused_with_what_patch_says(
    tree: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "v3.diff"
    patch.write_text(PATCH)
    script("build_kernel").apply([patch], tree, tmp_path)
    assert (tree / "net/ipv4/tcp_bbr.c").read_text() == "first\nthird\n"
    patch.write_text(PATCH.replace("second", "two").replace("third", "three"))
    with pytest.raises(UserError, match=r"v3\.diff: does not fit tree; must be (?s:.*)FAILED"):
        script("build_kernel").apply([patch], tree, tmp_path)


def test_what_is_ended_by_its_id_leaves_no_folder_and_no_compiler(
    tree: Path, tmp_path: Path
) -> None:
    (tree / "arch/x86").mkdir(parents=True)
    (tree / "arch/x86/Kconfig").touch()
    started, never, programs = tmp_path / "started", tmp_path / "never", tmp_path / "programs"
    os.mkfifo(started)
    os.mkfifo(never)
    (tree / "Makefile").write_text(f"allnoconfig:\n\t@echo $$$$ > {started}; cat {never}\n")
    programs.mkdir()
    for name in ("gcc", "flex", "bison", "bc", "tar", "xz", "patch", "pahole"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--whole", "--source", str(tree), "--name", "own"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(temporary)},
    )  # fmt: skip
    compiler = os.pidfd_open(int(started.read_text()))
    assert list(temporary.iterdir())
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 130
    assert list(temporary.iterdir()) == []
    await_ends([compiler])


def test_options_that_the_source_lacks_and_those_that_it_refuses_are_told_apart(
    tree: Path, tmp_path: Path
) -> None:
    (tree / "Kconfig").write_text("config NET\n\tbool\n\nmenuconfig VETH\n\tbool\n")
    wanted, config = tmp_path / "wanted", tmp_path / ".config"
    wanted.write_text("# of all\nCONFIG_NET=y\nCONFIG_VETH=y\nCONFIG_DUALPI2=y\n")
    config.write_text("CONFIG_NET=y\n# CONFIG_VETH is not set\n")
    assert source.left_out(wanted, config, tree) == (["CONFIG_DUALPI2=y"], ["CONFIG_VETH=y"])
    config.write_text("CONFIG_NET=y\nCONFIG_VETH=y\nCONFIG_DUALPI2=y\n")
    assert source.left_out(wanted, config, tree) == ([], [])


def test_the_machines_options_are_none_twice() -> None:
    files = (SCRIPT.parents[1] / "qemu/kernel.config", source.NETWORK)
    lines = [line for file in files for line in file.read_text().split("\n")]
    options = [line for line in lines if line and not line.startswith("#")]
    assert all(line.startswith("CONFIG_") and "=" in line for line in options)
    assert len(set(options)) == len(options)
