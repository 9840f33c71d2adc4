"""`fullpipe trace diff A B --on SCENARIO`: two versions of an algorithm, run and compared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from kernel_files import PLAIN, write

SCENARIO = """duration = "2s"
path = {rate = "10mbit", rtt = "20ms", buffer = "1bdp"}
flow = [{cc = "reno"}]
"""
OTHER = PLAIN.replace("__read_mostly = HALF;", "__read_mostly = 870;")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO)
    write(tmp_path, "plain", PLAIN)


def diff(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["trace", "diff", *words, "--on", "s.toml"])
    return answer.exit_code, answer.output


def git(*words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *own, *words], check=True, capture_output=True)


def test_two_files_part_at_the_first_reduction() -> None:
    write(Path(), "other", OTHER)
    status, said = diff("./tcp_plain.c", "./tcp_other.c")
    assert status == 1
    assert "(ssthresh)" in said or "(event" in said
    line = next(line for line in said.splitlines() if line.startswith("  ssthresh: "))
    half, more = (int(word.split(" ")[0]) for word in line.split(": ")[1].split(", "))
    assert 2 * half in (more * 1024 // 870 + 1, more * 1024 // 870 + 2, more * 1024 // 870)


def test_a_file_and_its_earlier_commit() -> None:
    git("init", "-q")
    git("add", "tcp_plain.c")
    git("commit", "-qm", "Add plain")
    assert diff("./tcp_plain.c", "HEAD") == (0, "no call differs\n")
    Path("tcp_plain.c").write_text(OTHER)
    status, said = diff("./tcp_plain.c", "HEAD")
    assert status == 1
    assert "  ssthresh: " in said
    words = ["trace", "diff", "./tcp_none.c", "HEAD", "--on", "s.toml"]
    with pytest.raises(UserError, match=r"tcp_none\.c: no such file"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    words = ["trace", "diff", "./tcp_plain.c", "v9", "--on", "s.toml"]
    with pytest.raises(UserError, match="v9: is no congestion control; as a commit: v9: "):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_the_same_algorithm_under_two_names_decides_alike() -> None:
    assert diff("reno", "reno")[0] == 0
    status, said = diff("reno", "cubic")
    assert status == 1 and "reno and cubic differ" in said
