"""The watchdog's clock counts what a worker does, not what the machine does to it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.congestion.userfiles.stalls import (
    StallClock,
    communicate,
    queued_s,
    queued_together_s,
)


class Times:
    """The two clocks that a StallClock reads, driven by a test."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.queued_s = 50.0
        self.computed_s = 20.0
        self.clock = StallClock(
            0.2, lambda: self.queued_s, lambda: self.now_s, lambda: self.computed_s
        )

    def pass_(self, seconds: float, queued_s: float = 0.0, computed_s: float = 0.0) -> float:
        self.now_s += seconds
        self.queued_s += queued_s
        self.computed_s += computed_s
        return self.clock.look()


def test_computing_and_sleeping_count_from_the_last_progress_on() -> None:
    times = Times()
    assert [times.pass_(0.1) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])
    times.clock.restart()
    assert times.pass_(0.1) == pytest.approx(0.1)


def test_a_worker_that_only_waits_for_a_processor_never_stalls() -> None:
    times = Times()
    assert max(times.pass_(0.1, queued_s=0.1) for _ in range(1000)) < 1e-6


def test_of_a_shared_processor_the_workers_own_part_counts() -> None:
    times = Times()
    for _ in range(100):
        times.pass_(0.1, queued_s=0.075)
    assert times.clock.stalled_s == pytest.approx(100 * 0.025)


def test_sleeping_counts_from_the_beginning_whatever_progress_says() -> None:
    times = Times()
    for _ in range(10):
        times.pass_(0.1, computed_s=0.02)
        times.clock.restart()
    assert times.clock.own_s == pytest.approx(1.0)
    assert times.clock.computed_s == pytest.approx(0.2)
    assert times.clock.idle_s == pytest.approx(0.8)


def test_a_wait_that_the_kernel_tells_late_is_taken_back() -> None:
    """It counts a wait when it ends."""
    times = Times()
    times.pass_(0.1)
    assert times.pass_(0.1, queued_s=0.2) == pytest.approx(0, abs=1e-6)


def test_a_pause_of_the_watching_process_counts_once() -> None:
    times = Times()
    assert times.pass_(3600) == pytest.approx(0.2)


def test_a_process_that_sleeps_waits_for_no_processor_and_one_that_shares_it_does() -> None:
    """Two loops on one processor each wait while the other runs."""
    core = min(os.sched_getaffinity(0))
    loop = f"import os; os.sched_setaffinity(0, [{core}]); print(1, flush=True)\nwhile True: pass"
    sleep = "import time; print(1, flush=True); time.sleep(1e6)"
    started = []
    try:
        for code in (loop, loop, sleep):
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            started.append(process)
            assert process.stdout is not None and process.stdout.readline()
        *loops, sleeper = [process.pid for process in started]
        while Path(f"/proc/{sleeper}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            pass
        before = {pid: queued_s(pid) for pid in (*loops, sleeper)}
        while any(queued_s(pid) < before[pid] + 0.02 for pid in loops):
            pass
        assert queued_s(sleeper) == before[sleeper]
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.communicate()


def test_without_such_a_process_nothing_is_counted() -> None:
    assert queued_s(2**31 - 1) == 0
    assert queued_together_s(2**31 - 1) == 0


def test_a_program_that_only_waits_for_a_processor_is_waited_for() -> None:
    looks = itertools.count()
    with subprocess.Popen(
        ["sh", "-c", "read line; echo $line"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
    ) as process:  # fmt: skip
        feed, process.stdin = process.stdin, None

        def waits(_group: int) -> float:
            count = next(looks)
            if count == 10:
                assert feed is not None
                feed.write("done\n")
                feed.close()
            return 1000.0 * count

        assert communicate(process, 0.01, waits)[0] == "done\n"


def test_a_program_that_sleeps_for_its_limit_is_not_waited_for() -> None:
    with subprocess.Popen(
        ["sleep", "1000"], stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            communicate(process, 0.1)
        process.kill()


def test_a_compiler_waits_while_the_processes_that_it_started_wait() -> None:
    """Their parent sleeps meanwhile."""
    core = min(os.sched_getaffinity(0))
    loop = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    with subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1" & "$0" -c "$1" & wait', sys.executable, loop], process_group=0
    ) as process:
        try:
            while queued_together_s(process.pid) < queued_s(process.pid) + 0.1:
                assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
