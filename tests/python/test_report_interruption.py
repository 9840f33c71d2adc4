"""Ctrl-C and SIGTERM: what was recorded is readable and says so, and nothing is left half-made."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

from external_files import works
from fullpipe.engines.run import runs_of
from fullpipe.engines.runner import execute
from fullpipe.metrics import summarise
from fullpipe.recording.recording import Recording
from fullpipe.report.figures import write_figures
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario
from helpers import await_ends

#: Hours of simulated time: nobody waits for its end.
LONG = """
name = "long"
duration = "1200min"
warmup = "1s"
sample_interval = "10s"
[path]
rate = "100mbit"
rtt = "40ms"
[[flow]]
cc = "cubic"
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from fullpipe.cli import main; main()", "run", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def interrupt(child: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[str, str]:
    os.kill(child.pid, number)
    output, messages = child.communicate()
    assert "Traceback" not in messages
    assert child.returncode == 130, messages
    return output, messages


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_recording_that_says_so(tmp_path: Path, number: int) -> None:
    scenario, out, capture = tmp_path / "s.toml", tmp_path / "out", tmp_path / "capture"
    scenario.write_text(LONG, encoding="utf-8")
    child = start(str(scenario), "--out", str(out), "--pcap", str(capture))
    # Once the capture, which gets its name at the end, has bytes, the run is under way.
    while not any(partial.stat().st_size for partial in tmp_path.glob(".capture.*")):
        assert child.poll() is None, child.communicate()
    output, messages = interrupt(child, number)
    assert "interrupted before its end" in messages
    assert f"what was recorded is readable in {out}" in messages
    recording = Recording.open(out)
    assert recording.metadata["interrupted"] is True
    summary = summarise(recording)
    assert summary["interrupted"] is True
    assert "interrupted before its end" in (out / "report.html").read_text(encoding="utf-8")
    assert "cubic" in output


@pytest.mark.slow
def test_interrupted_repetitions_keep_every_run_that_was_begun_and_nothing_else(
    tmp_path: Path,
) -> None:
    scenario, out = tmp_path / "s.toml", tmp_path / "out"
    scenario.write_text(LONG.replace("1200min", "300s"), encoding="utf-8")
    child = start(str(scenario), "--out", str(out), "--repeat", "1000", "--jobs", "2", "--json")
    while not (out / "run-001").exists():
        assert child.poll() is None, child.communicate()
    output, messages = interrupt(child)
    names = sorted(path.name for path in out.iterdir() if path.is_dir())
    assert 2 <= len(names) < 1000
    assert f"({len(names)} of 1000 runs)" in messages
    recordings = [Recording.open(out / name) for name in names]
    assert [run.metadata["seed"] for run in recordings] == [1 + int(n[4:]) for n in names]
    assert recordings[names.index("run-001")].metadata["interrupted"] is False
    assert output.count('"seed"') == len(names)


def test_no_worker_runs_on_for_a_program_that_was_killed(tmp_path: Path) -> None:
    scenario, out = tmp_path / "s.toml", tmp_path / "out"
    scenario.write_text(LONG.replace("1200min", "300s"), encoding="utf-8")
    child = start(str(scenario), "--out", str(out), "--repeat", "1000", "--jobs", "2")
    while not (out / "run-001").exists():
        assert child.poll() is None, child.communicate()
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    watched = [os.pidfd_open(int(pid)) for pid in children]
    child.kill()
    child.wait()
    assert len(watched) >= 2
    await_ends(watched)


#: An algorithm whose first ACK never ends.
ENDLESS = """
import fullpipe


class Endless(fullpipe.Controller):
    title = "a loop without end"

    def on_ack(self, ack):
        while True:
            pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]])
@pytest.mark.parametrize("several", [[], ["--repeat", "4", "--jobs", "2"]])
def test_no_worker_of_an_algorithm_outlives_an_interrupted_command(
    tmp_path: Path, signals: list[int], several: list[str]
) -> None:
    """One signal ends a run in order; the second at once, though a worker hears nothing."""
    mine = works(tmp_path)
    if len(signals) > 1:
        mine = tmp_path / "endless.py"
        mine.write_text(ENDLESS)
    scenario = tmp_path / "s.toml"
    scenario.write_text(LONG.replace('"cubic"', f'"{mine}"'), encoding="utf-8")
    child = start(str(scenario), "--out", str(tmp_path / "out"), *several)
    workers: list[int] = []
    while len(workers) < (3 if several else 1):  # of several runs one more describes the algorithm
        assert child.poll() is None, child.communicate()
        workers = [pid for pid in _descendants(child.pid) if _is_worker(pid)]
    watched = [os.pidfd_open(pid) for pid in workers]
    for number in signals[1:]:
        os.kill(child.pid, number)
    interrupt(child, signals[0])
    await_ends(watched)


def _descendants(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found


def _is_worker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"userfiles/worker.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.slow
@pytest.mark.parametrize("at_call", [0, 1])
def test_a_run_stopped_before_its_warm_up_ends_can_still_be_reported(
    tmp_path: Path, at_call: int
) -> None:
    document = {
        "name": "early", "duration": "180min", "warmup": "120min",
        "sample_interval": "10s", "path": {"rate": "100mbit", "rtt": "40ms"},
        "flow": [{"cc": "bbr3"}, {"cc": "cubic"}], "probe": [{"kind": "ping"}],
    }  # fmt: skip
    calls = 0

    def stop(_share: float) -> None:
        nonlocal calls
        calls += 1
        if calls == at_call + 1:
            signal.raise_signal(signal.SIGINT)

    scenario = make_scenario(document)
    runs = runs_of(scenario, tomli_w.dumps(document), [scenario.seed])
    outcome = execute(runs, [tmp_path / "r"], stop)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert outcome.interrupted
    recording = Recording.open(tmp_path / "r")
    assert not summarise(recording)["flows"][0]["goodput_bps"]
    write_report([recording], tmp_path / "report.html")
    assert write_figures([recording], tmp_path / "figures")
