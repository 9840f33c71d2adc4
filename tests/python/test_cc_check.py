"""`fullpipe cc check`: what is undefined in a file is found with its line and the call that led
there; what is sound is not accused."""

from __future__ import annotations

import json
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from external_files import GROW, changed, works
from fullpipe import cli
from fullpipe.authoring import check
from fullpipe.authoring.cost import Cost
from fullpipe.authoring.new import write_new
from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles

#: What it is -> (what stands where the window grows, what the finding says).
UNDEFINED = {
    "signed overflow": (
        "s32 x = (s32)left; ctl->cwnd += (u32)(x * 100000000) >> 31;",
        "mine.h:43: signed integer overflow",
    ),
    "shift too far": ("ctl->cwnd = 1u << left;", "mine.h:43: shift exponent"),
    "beyond the state": (
        "(&s->prior_cwnd)[left & 3] = 1;",
        "mine.h:43: heap-buffer-overflow",
    ),
    "read before it was written": (
        "u32 a[8]; if (left < 3) a[left & 7] = 1; ctl->cwnd += a[2] & 7;",
        "a variable is read before it was written",
    ),
    "endless where many are acknowledged": (
        "for (u32 i = 1; left > 100 && i; i += 2) CC_STEP();",
        "did not end within 2 s",
    ),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("kind", UNDEFINED)
def test_what_is_undefined_is_found_with_its_line_and_the_call(kind: str, tmp_path: Path) -> None:
    code, said = UNDEFINED[kind]
    path = changed(tmp_path, GROW, code)
    with pytest.raises(UserError) as finding:
        userfiles.fuzz(userfiles.read(path))
    assert said in str(finding.value)
    assert "of connection" in str(finding.value) and "on_ack: acked_sacked" in str(finding.value)


@pytest.mark.slow
@pytest.mark.parametrize("like", ["cubic", "bbr3"])
def test_a_built_in_in_a_users_file_does_nothing_undefined(like: str, tmp_path: Path) -> None:
    source = userfiles.read(write_new("mine", like, tmp_path))
    assert userfiles.fuzz(source, connections=50) == "50,000 calls of 50 connections"


@pytest.mark.slow
def test_a_compiler_without_sanitizers_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *-fsanitize=undefined*) '
        "echo 'ld: cannot find -lubsan' >&2; exit 1;; esac\nexec cc \"$@\"\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    steps = {step.name: step for step in check.check(str(works(tmp_path)), [], seeds=1)}
    assert steps["undefined behaviour"].holds is None
    assert steps["hostile paths"].holds


def test_strict_warnings_follow_what_was_written(tmp_path: Path) -> None:
    path = changed(tmp_path, GROW, "u32 a; if (left > 3) a = conn->mss_bytes; ctl->cwnd += a;")
    with pytest.raises(UserError, match=r"mine\.h:43: .*uninitialized"):
        userfiles.warnings(userfiles.read(path))


#: Reads that the optimiser hides from sanitizers: what stands where the window grows.
UNWRITTEN = {
    "on one path": "u32 a; if (left > 3) a = conn->mss_bytes; if (conn->delivered & 8) "
    "ctl->cwnd += a & 1;",
    "field of a structure": "struct { u32 a, b; } x; x.a = left; if (x.b & 1) ctl->cwnd++;",
    "through a pointer": "u32 a, *at = &a; if (*at & 1) ctl->cwnd++;",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNWRITTEN)
@pytest.mark.parametrize("lacks", [(), ("clang",), ("valgrind",), ("clang", "valgrind")])
def test_a_read_of_a_variable_that_was_not_written_is_found(
    kind: str, lacks: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without(lacks, monkeypatch)
    path = changed(tmp_path, GROW, UNWRITTEN[kind])
    with pytest.raises(UserError, match=r"uninitialized|written") as finding:
        userfiles.uninitialised(userfiles.read(path))
    if "valgrind" not in lacks and shutil.which("valgrind"):
        assert re.search(r"mine\.h:(43|3\d): ", str(finding.value))


@pytest.mark.parametrize("lacks", [(), ("clang", "valgrind")])
def test_what_writes_before_it_reads_is_not_accused(
    lacks: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without(lacks, monkeypatch)
    said = userfiles.uninitialised(userfiles.read(works(tmp_path)))
    assert "200,000 calls on two stacks" in said
    assert all(f"{name}" in said.partition("; without ")[2] for name in lacks)


def _without(programs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(
        "fullpipe.congestion.userfiles.unwritten.shutil.which",
        lambda name: None if name in programs else which(name),
    )


def test_a_fuzz_that_takes_too_long_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fullpipe.congestion.userfiles.fuzzing.TIMEOUT_S", 0.5)
    path = changed(tmp_path, GROW, "for (u32 i = 1; left > 100 && i; i += 2) CC_STEP();")
    with pytest.raises(UserError, match=r"took more than 0.5 s"):
        userfiles.fuzz(userfiles.read(path), connections=7919)
    running = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            running.append(file.read_bytes().split(b"\0"))
    assert not [words for words in running if words[-3:] == [b"1", b"7919", b""]]


def test_what_it_costs_is_shown_as_a_table_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Cost("./mine.h", 21000.4, 27.3, 216.0, 8146, {"fp_cong_avoid": (8146, 242.0)})
    theirs = Cost("kernel:cubic", 21990.0, 76.2, None, 9081, {"fp_cong_avoid": (9081, 54.0)})
    step = check.Step("vm 6.12, cost", True, "words", (mine, theirs))
    monkeypatch.setattr(check, "check", lambda _file, _kernels, begins: iter([step]))
    monkeypatch.chdir(tmp_path)
    write_new("mine", None, tmp_path)
    shown = []
    for option in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["fullpipe", "cc", "check", "./mine.h", *option])
        with suppress(SystemExit):
            cli.main()
        shown.append(capsys.readouterr().out)
    rows = [line.split() for line in shown[0].splitlines()]
    assert ["./mine.h", "27", "216", "21,000", "8,146"] in rows
    assert ["kernel:cubic", "76", "-", "21,990", "9,081"] in rows
    (told,) = json.loads(shown[1])["steps"]
    assert [one["own_an_ack"] for one in told["costs"]] == [27, 76]
    assert told["costs"][1]["glue_an_ack"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["./mine.h[beta=0.8]"], "leave out [...]"),
        (["./mine.h", "--kernels", "5.4"], "--kernel 5.4: no such file"),
        (["mine"], "name a file, such as ./mine.h"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_any_step(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fullpipe", "cc", "check", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    answer = capsys.readouterr()
    assert ended.value.code == 2 and said in answer.err and not answer.out


def test_a_kernel_that_is_not_here_leaves_its_steps_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("warnings", "fuzz", "uninitialised"):
        monkeypatch.setattr(userfiles, name, lambda _source: "not asked here")
    monkeypatch.setattr(check, "PATHS", {})
    (*_, step) = check.check(str(works(tmp_path)), ["5.4"], seeds=1)
    assert step.holds is None and "5.4" in step.words


@pytest.mark.slow
def test_each_step_is_named_before_it_is_made_and_a_kernel_that_refuses_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise UserError("the kernel refuses mine: back-edge from insn 7 to 7")

    for name in ("warnings", "fuzz", "uninitialised"):
        monkeypatch.setattr(userfiles, name, lambda _source: "not asked here")
    monkeypatch.setattr(check, "_survives", lambda *_: "not asked here")
    monkeypatch.setattr(check, "machine_for", lambda _release: None)
    monkeypatch.setattr(check, "_agrees", refuse)
    monkeypatch.setattr(check, "_costed", refuse)
    monkeypatch.setattr(check.os, "geteuid", lambda: 1)
    begun: list[str] = []
    made = []
    for step in check.check(str(works(tmp_path)), ["6.1", "6.12"], begins=begun.append):
        assert step.name in (begun[-1], "this kernel")
        made.append(step.name)
    assert [name for name in made if name.startswith("vm")] == ["vm 6.1, bulk", "vm 6.12, bulk"]
    monkeypatch.setattr(check.os, "geteuid", lambda: 0)
    monkeypatch.setattr(check, "_loads", refuse)
    (*_, last) = check.check(str(tmp_path / "mine.h"), ["6.1"])
    assert last.name.startswith("this kernel")


@pytest.mark.slow
def test_without_clang_the_step_for_kernels_is_not_run_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLANG", "no-such-clang")
    file = write_new("mine", "reno", tmp_path)
    steps = {step.name: step for step in check.check(str(file), [], seeds=1)}
    last = steps["compiles for eBPF"]
    assert last.holds is None and "apt-get install clang libbpf-dev" in last.words
    assert [*steps][-1] == last.name
    assert all(step.holds is not False for step in steps.values())


def test_a_file_that_is_not_there_is_bad_input_and_no_failed_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fullpipe", "cc", "check", str(tmp_path / "none.h")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert "none.h: cannot be read" in said.err and not said.out
