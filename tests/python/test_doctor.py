"""What `doctor` says agrees with what a run does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import forks
from fullpipe.doctor import checks

SCENARIO = """
duration = "1s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "reno"
"""


def fullpipe(*words: str, path: str | None = None) -> tuple[int, str]:
    environment = {**os.environ, **({"PATH": path} if path is not None else {})}
    return forks.command(words, Path.cwd(), environment)


@pytest.mark.live
@pytest.mark.slow
def test_doctor_says_whether_a_live_run_works_here(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    ran, error = fullpipe("run", str(file), "--engine", "live", "--out", str(tmp_path / "live"))
    status, said = fullpipe("doctor", "--for", "live")
    assert (status == 0) == (ran == 0), said + error


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="without root nothing of live works")
def test_a_qdisc_that_cannot_be_made_is_named_with_what_is_lost(tmp_path: Path) -> None:
    tc = tmp_path / "tc"
    tc.write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2; exit 2\n")
    tc.chmod(0o755)
    status, said = fullpipe("doctor", "--for", "live", path=f"{tmp_path}:{os.environ['PATH']}")
    assert status == 1
    text = " ".join(said.split())
    assert "no live: netem" in text and "qdisc" in text and "the delay of" in text
    # Without --for it reports and asks for nothing.
    assert fullpipe("doctor", path=f"{tmp_path}:{os.environ['PATH']}")[0] == 0


def test_the_machine_is_missing_where_qemu_is(tmp_path: Path) -> None:
    for program in ("sh", "unshare", "git"):
        found = shutil.which(program)
        if found is not None:
            (tmp_path / program).symlink_to(found)
    status, said = fullpipe("doctor", "--for", "vm", path=str(tmp_path))
    assert status == 1 and "not installed" in said
    assert fullpipe("doctor", "--for", "sim", path=str(tmp_path))[0] == 0


def test_compilers_of_files_are_tried_and_named_where_they_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("sim: C compiler", "vm, live: clang")
    there = {check.name: check for check in checks()}
    assert all(there[name].ok for name in names)
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("CLANG", "no-such-compiler")
    gone = {check.name: check for check in checks()}
    assert not any(gone[name].ok or gone[name].needed for name in names)
    assert gone[names[0]].remedy == "apt-get install gcc libc6-dev (as root)"
    assert gone[names[1]].remedy == "apt-get install clang libbpf-dev (as root)"


def test_without_root_engine_live_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (live,) = (check for check in checks("live") if check.name.startswith("live"))
    assert not live.ok and live.detail == "needs root" and live.needed == ("live",)
    assert live.remedy.startswith("sudo ")


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    status, said = fullpipe("doctor", "--for", "qemu")
    assert status == 2 and "'sim', 'vm', 'live'" in said


def test_what_building_a_kernel_lacks_is_named_and_asked_for_by_no_engine(tmp_path: Path) -> None:
    for program in ("sh", "unshare", "git", "bc", "tar"):
        # Only looked for: a new machine may lack it.
        (tmp_path / program).symlink_to(shutil.which(program) or "/bin/true")
    text = " ".join(fullpipe("doctor", path=str(tmp_path))[1].split())
    assert "no vm: building lacks make, gcc, libc6-dev, flex, bison, xz-utils, patch," in text
    assert "scripts/build_kernel.py" in text and "apt-get install" in text
