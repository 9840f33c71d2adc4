"""What the virtual machine's kernel says reaches the user: an oops whole, with the line that the
simulator finds; warnings and printk in the recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from fullpipe.authoring.judges import build
from fullpipe.base.errors import RunError
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
    try:
        failure = real(path).failure or ""
    except RunError as error:
        failure = str(error)
    assert "RIP: 0010:plain_cong_avoid" in failure and "tcp_ack" in failure
