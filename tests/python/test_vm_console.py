"""What the virtual machine's kernel says reaches the user: an oops whole, with the line that the
simulator finds; warnings and printk in the recording; of a flood the first, and how much it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer import Exit

from fullpipe.authoring.judges import build
from fullpipe.base.errors import RunError
from fullpipe.cli.kernel_log import shown
from fullpipe.cli.output import fail, warn
from fullpipe.engines.base import RunResult
from fullpipe.engines.vm import VmEngine, _cause, _unfinished, hardware
from fullpipe.engines.vm.watch import Ended, last_words
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from kernel_files import PLAIN, write

OOPS = [
    "[    6.1] BUG: unable to handle page fault for address: 0000000000000010",
    "[    6.1] Oops: 0002 [#1] PREEMPT SMP",
    "[    6.1] RIP: 0010:plain_cong_avoid+0x12/0x40 [tcp_plain]",
    *(f"[    6.1]  ? frame{number}" for number in range(30)),
    "[    6.1] Kernel panic - not syncing: Fatal exception in interrupt",
]
needs_machine = pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")


def ended(console: list[str], silent: bool = False) -> Ended:
    return Ended("9.0", b"", console, interrupted=False, silent=silent)


def test_an_oops_is_told_whole_and_what_came_before_it_is_not() -> None:
    boot = [f"[    0.{number}] boot" for number in range(40)]
    assert last_words(boot + OOPS) == OOPS
    assert last_words(boot) == boot[-12:]


def test_what_the_kernel_dies_of_is_told_before_what_it_complained_of() -> None:
    warning = ["WARNING: CPU: 0 at tcp_plain.c:9", *(f" frame{number}" for number in range(200))]
    bug = ["kernel BUG at tcp_plain.c:12!", "Oops: invalid opcode: 0000 [#1]", "RIP: 0010:plain"]
    assert last_words([*warning, *bug]) == bug
    told = last_words(warning)
    assert told[0] == warning[0] and told[-1] == warning[-1]
    assert "(97 lines more)" in told and len(told) == len(warning) - 97 + 1


def test_a_terminal_shows_the_first_lines_and_the_first_warning_whole() -> None:
    lines = [f"line {number}" for number in range(15)]
    warning = [
        "------------[ cut here ]------------",
        "WARNING: a",
        " call",
        "---[ end trace 0 ]---",
    ]
    told = shown("\n".join([*lines, *warning, *warning]) + "\n")
    assert told == [
        *lines[:10], "(5 lines)", *warning,
        "kernel log: 23 lines, all in the report and the recording's facts",
    ]  # fmt: skip
    assert shown("one\ntwo\n") == ["one", "two"]


def test_lines_that_were_not_kept_are_counted() -> None:
    told = shown("one\n(20 lines lost, faster than they could be read)\ntwo\n(300 lines more)\n")
    assert told[-1].startswith("kernel log: 322 lines, of which 2 are in the report")


def test_a_failed_run_is_told_in_a_line_and_whole_where_the_command_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    oops = "it died:\n" + "\n".join("x" * 99 for _ in range(100))
    warn("out", [f"failed: {oops}"])
    assert capsys.readouterr().err.strip() == "warning: out: failed: it died:"
    with pytest.raises(Exit):
        fail(oops, 1)
    assert capsys.readouterr().err.count("x" * 99) == 100


def test_a_failure_has_the_machines_words_line_by_line() -> None:
    told = _unfinished(ended(last_words(OOPS)), complete=False)
    assert told is not None
    assert told.splitlines()[0] == "the virtual machine died; its last messages:"
    assert "  [    6.1] RIP: 0010:plain_cong_avoid+0x12/0x40 [tcp_plain]" in told.splitlines()
    hung = _unfinished(ended([], silent=True), complete=False)
    assert hung == "the virtual machine hung; its last messages: none"
    assert _unfinished(ended(OOPS), complete=True) is None


def plan(cc: str) -> dict[str, object]:
    path = {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"}
    return dict(resolve(make_scenario({"duration": "2s", "path": path, "flow": [{"cc": cc}]})))


def growing(folder: Path, code: str) -> str:
    """PLAIN with a statement before its growth."""
    limited = "\tif (!tcp_is_cwnd_limited(sk))\n"
    text = PLAIN.replace(limited, f"\tif (tcp_snd_cwnd(tp) == 30)\n\t\t{code};\n{limited}")
    return str(write(folder, "plain", text))


def test_a_hang_is_named_as_the_simulator_names_it(tmp_path: Path) -> None:
    path = growing(tmp_path, "acked /= tp->snd_cwnd - 30")
    told = _cause(plan(path), "the virtual machine hung; its last messages: none")
    assert told.startswith("the virtual machine hung")
    assert "the simulator, of the same scenario: " in told and "tcp_plain.c:" in told
    assert _cause(plan("reno"), "it hung") == "it hung"


def real(path: str) -> RunResult:
    module = build(path, "6.12")
    options = {"kernel": "6.12", "module": str(module.file)}
    return VmEngine().run(plan(f"kernel:{module.name}"), lambda _done: True, options)


def failure_of(path: str) -> str:
    try:
        return real(path).failure or ""
    except RunError as error:  # before the first sample
        return str(error)


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_warning_and_a_printk_are_in_the_recording(tmp_path: Path) -> None:
    path = growing(tmp_path, 'WARN_ON_ONCE(1), pr_info("plain: window %u\\n", 30)')
    log = real(path).metadata["facts"]["kernel log"]
    assert "plain: window 30" in log
    assert "WARNING: CPU: 0" in log and "RIP: 0010:plain_cong_avoid" in log


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_an_oops_has_its_place_and_its_calls(tmp_path: Path) -> None:
    path = growing(tmp_path, "*(volatile int *)(long)(acked + 16) = 1")
    failure = failure_of(path)
    assert "RIP: 0010:plain_cong_avoid" in failure and "tcp_ack" in failure


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_of_a_flood_the_first_is_kept_and_the_rest_counted(tmp_path: Path) -> None:
    limited = "\tif (!tcp_is_cwnd_limited(sk))\n"
    text = PLAIN.replace(limited, f'\tWARN(1, "plain: %u\\n", acked);\n{limited}')
    result = real(str(write(tmp_path, "plain", text)))
    log = result.metadata["facts"]["kernel log"]
    assert result.failure is None and len(log) < 70_000
    assert "[ cut here ]" in "".join(log.splitlines()[:12])
    assert log.count("WARNING: CPU") > 1
    # A warning with its calls is some 60 lines.
    lines = int(shown(log)[-1].removeprefix("kernel log: ").partition(" ")[0].replace(",", ""))
    packets = result.tables["flows"]["packets_sent"][0].as_py()
    assert 10 * packets < lines < 70 * packets


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_hang_has_its_place_and_its_calls(tmp_path: Path) -> None:
    path = growing(tmp_path, "while (READ_ONCE(tp->snd_cwnd)) cpu_relax()")
    failure = failure_of(path)
    assert failure.startswith("the virtual machine hung")
    assert "RIP: 0010:plain_cong_avoid" in failure and "tcp_ack" in failure
