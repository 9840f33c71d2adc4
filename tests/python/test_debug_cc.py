"""`--debug-cc`: an algorithm of a file under a debugger."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from external_files import works
from kernel_files import PLAIN

FULLPIPE = Path(sys.executable).with_name("fullpipe")
SCENARIO = """duration = "3s"
[path]
rate = "10mbit"
rtt = "40ms"
[[flow]]
cc = "./mine.h"
"""
WORDS = ("run", "short.toml", "--no-report", "--out")


@pytest.fixture(autouse=True)
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    works(tmp_path)
    Path("short.toml").write_text(SCENARIO)


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_file_compiled_for_a_debugger_leaves_the_same_recording() -> None:
    plain = ran(str(FULLPIPE), *WORDS, "plain")
    debugged = ran(str(FULLPIPE), *WORDS, "debugged", "--debug-cc")
    assert plain.returncode == debugged.returncode == 0, debugged.stderr
    assert "break mine_on_ack" in debugged.stderr
    for table in ("flow_samples", "cc_samples", "flows"):
        one, other = (pq.read_table(f"{out}/{table}.parquet") for out in ("plain", "debugged"))
        assert one.equals(other), table


@pytest.mark.slow
def test_the_printed_command_can_be_copied_and_repeated() -> None:
    first = ran(str(FULLPIPE), *WORDS, "debugged", "--debug-cc")
    line = next(line for line in first.stderr.splitlines() if line.lstrip().startswith("gdb "))
    command = shlex.split(line.partition(" --args ")[2])
    for _ in range(2):
        again = ran(*command)
        assert again.returncode == 0, again.stderr
    assert Path("debugged").is_dir() and Path("debugged-gdb").is_dir()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_gdb_stops_in_on_ack_and_shows_state_facts_and_locals() -> None:
    command = [sys.executable, str(FULLPIPE), *WORDS, "debugged", "--debug-cc"]
    asked = [
        "set breakpoint pending on", "break mine_on_ack", "run", "print *s",
        "print ack->acked_sacked", "next", "print left", "delete",
        "break mine_on_event if event->kind == CC_EVENT_SSTHRESH",
        "continue", "print ctl->cwnd", "next 3", "print *s", "kill",
    ]  # fmt: skip
    words = [word for one in asked for word in ("-ex", one)]
    said = ran("gdb", "-nx", "-q", "-batch", *words, "--args", *command).stdout
    line = next(
        number
        for number, text in enumerate(Path("mine.h").read_text().splitlines(), 1)
        if "left = ack->acked_sacked" in text
    )
    assert re.search(rf"mine_on_ack \(s=.*\) at \S*/mine\.h:{line}$", said, re.M), said
    shown = dict(re.findall(r"^\$(\d+) = (.*)$", said, re.M))
    assert shown["1"] == "{prior_cwnd = 0}"
    assert shown["2"] == shown["3"]  # left
    assert int(shown["4"]) > 10 and shown["5"] == f"{{prior_cwnd = {shown['4']}}}"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("--cc", "cubic"), "no flow has a file of C"),
        (("--repeat", "2"), "only with --engine sim and one run"),
        (("--engine", "vm"), "only with --engine sim and one run"),
    ],
)
def test_what_cannot_be_debugged_is_refused(changes: tuple[str, ...], said: str) -> None:
    answer = ran(str(FULLPIPE), *WORDS, "debugged", "--debug-cc", *changes)
    assert answer.returncode == 2 and said in answer.stderr
    assert not Path("debugged").exists()


def test_a_kernels_file_compiled_for_a_debugger_leaves_the_same_recording() -> None:
    Path("tcp_plain.c").write_text(PLAIN)
    words = [str(FULLPIPE), *WORDS[:-1], "--cc", "./tcp_plain.c", "--out"]
    for out, more in (("plain", ()), ("debugged", ("--debug-cc",))):
        answer = ran(*words, out, *more)
        assert answer.returncode == 0, answer.stderr
    one, other = (pq.read_table(f"{out}/flow_samples.parquet") for out in ("plain", "debugged"))
    assert one.equals(other)
