"""The examples of congestion controls, in a folder outside the project: they do what they say."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fullpipe
from kernel_host import available, loaded, program, why_not

__all__ = ["loaded"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "cc"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(EXAMPLES, tmp_path / "mine"))


def run(control: str, count: int = 1, **more: Any) -> fullpipe.Recordings:
    return fullpipe.run({
        "duration": "30s", "warmup": "10s",
        "path": {"rate": "20mbit", "rtt": "40ms", "buffer": "4bdp"},
        "flow": [{"cc": control, "count": count, "name": "f", "start_step": "1s"}],
    } | more)  # fmt: skip


def queue_packets(runs: fullpipe.Recordings) -> Any:
    table = runs.table("queue_samples").to_pydict()
    return np.array([packets for t_us, name, packets in
                     zip(table["t_us"], table["queue"], table["queue_packets"], strict=True)
                     if name == "forward" and t_us > 10_000_000])  # fmt: skip


@pytest.mark.parametrize("flows", [1, 4])
def test_copa_keeps_the_queue_that_its_paper_states(flows: int, folder: Path) -> None:
    """NSDI 2018, its analysis of the steady state: the queue runs from 0 to 2.5 packets over the
    delta of all flows together, so 1.25 on average; the default mode's delta is 1/2, and flows
    share equally."""
    runs = run(f"{folder}/copa.h", flows)
    queue, together = queue_packets(runs), flows / 0.5
    assert queue.mean() == pytest.approx(1.25 * together, rel=0.25)
    assert queue.min() <= 1 and queue.max() <= 2.5 * together + 3
    assert runs.metrics("path")["utilisation"].to_pylist()[0] > 0.98
    (jain,) = runs.metrics("runs")["jain"].to_pylist()
    assert jain is None if flows == 1 else jain > 0.98


@pytest.mark.parametrize("rtt_ms", [40, 100])
def test_copas_queue_is_nearly_empty_about_every_five_round_trips(
    rtt_ms: int, folder: Path
) -> None:
    """The authors' own code takes other flows for buffer fillers where the least delay of four
    smoothed round trips is not within a tenth of the largest (venkatarun95/genericCC,
    rtt-window.cc, is_copa()). That code sends datagrams one by one: no TSO."""
    path = {"rate": "20mbit", "rtt": f"{rtt_ms}ms", "buffer": "4bdp"}
    one_by_one = {"gso_max_segments": 1}
    runs = run(f"{folder}/copa.h", 4, path=path, host=one_by_one, sample_interval="2ms")
    queue = queue_packets(runs)
    windows = np.lib.stride_tricks.sliding_window_view(queue, 5 * rtt_ms // 2)
    assert (windows.min(axis=1) < 0.1 * windows.max(axis=1)).mean() > 0.95
    empty = np.flatnonzero(queue < 0.1 * queue.max()) * 2 / rtt_ms
    between = np.diff(empty)
    assert 3.5 < np.median(between[between > 1]) < 6


def test_copa_is_fairer_to_other_round_trips_than_cubic_and_minds_no_random_loss(
    folder: Path,
) -> None:
    """What the paper's abstract says: fairer with diverse RTTs, robust to loss that is not of
    congestion; and without its mode for that, little beside a flow that fills the buffer."""
    copa = f"{folder}/copa.h"
    jain, carried = {}, {}
    lossy = {"rate": "20mbit", "rtt": "40ms", "buffer": "4bdp", "loss": "1%"}
    for cc in (copa, "cubic"):
        flows = [{"cc": cc, "name": "short"}, {"cc": cc, "name": "long", "rtt": "160ms"}]
        jain[cc] = run(cc, flow=flows).metrics("runs")["jain"].to_pylist()[0]
        carried[cc] = run(cc, path=lossy).metrics("path")["utilisation"].to_pylist()[0]
    assert jain[copa] > 0.95 > 0.9 > jain["cubic"]
    assert carried[copa] > 0.98 > 0.3 > carried["cubic"]
    beside = run(copa, flow=[{"cc": copa, "name": "copa"}, {"cc": "cubic", "name": "cubic"}])
    assert beside.metrics("flows")["share"].to_pylist()[0] < 0.15


def test_the_file_that_is_like_vegas_keeps_two_to_four_packets_in_the_queue(folder: Path) -> None:
    runs = run(f"{folder}/vegas.h")
    assert 2 <= queue_packets(runs).mean() <= 5
    assert runs.metrics("path")["utilisation"].to_pylist()[0] > 0.98


def test_aimd_is_reno_with_its_constant_in_c_and_in_python(folder: Path) -> None:
    theirs = run("reno", cc={"reno": {"beta": 0.85}}).table("flow_samples")
    assert run(f"{folder}/aimd.h").table("flow_samples") == theirs
    mine = run(f"{folder}/mine.py:Mine").table("flow_samples")
    assert mine == theirs


@pytest.mark.live
@pytest.mark.root
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("name", ["aimd", "vegas", "copa"])
def test_this_hosts_kernel_runs_them_for_any_program(
    name: str, folder: Path, loaded: Callable[..., str]
) -> None:
    there = loaded(f"{folder}/{name}.h")
    assert there in available()
    with program(there, 2_000_000) as user:
        assert user.transfer() == {"arrived": 2_000_000, "name": there}


def test_ledbat_keeps_its_target_alone_and_gives_way_to_cubic(folder: Path) -> None:
    """The draft's target is 60 ms of queue; beside a flow that fills the buffer (4 BDP, 160 ms) it
    takes next to nothing."""
    alone = queue_packets(run(f"{folder}/ledbat.h", duration="60s"))
    delay_ms = alone * 1514 * 8 / 20e3
    assert 50 < np.median(delay_ms) < 65
    beside = run(
        f"{folder}/ledbat.h",
        flow=[{"cc": f"{folder}/ledbat.h", "name": "back"}, {"cc": "cubic", "name": "front"}],
    )
    back, front = beside.metrics()["goodput_bps"].to_pylist()
    assert back < 0.05 * front


def test_westwood_loses_less_to_random_loss_than_reno(folder: Path) -> None:
    """Its window after a loss is the bandwidth times the least RTT, whatever was lost by chance."""
    path = {"rate": "20mbit", "rtt": "40ms", "buffer": "1bdp", "loss": "0.1%"}
    (westwood,) = run(f"{folder}/westwood.h", path=path).metrics()["goodput_bps"].to_pylist()
    (reno,) = run("reno", path=path).metrics()["goodput_bps"].to_pylist()
    assert westwood > 1.1 * reno


def test_vivace_stands_random_loss_with_an_empty_queue_and_shows_its_utility(folder: Path) -> None:
    """Its utility falls with the rate only where loss is above 5 % (section 4.1 of the paper)."""
    path = {"rate": "20mbit", "rtt": "40ms", "buffer": "4bdp", "loss": "1%"}
    runs = run(f"{folder}/vivace.h", path=path)
    assert runs.metrics("path")["utilisation"].to_pylist()[0] > 0.75
    assert np.median(queue_packets(runs)) < 5
    samples = runs.table("cc_samples").to_pydict()
    utility = [value for value in samples["utility"] if value is not None]
    assert len(utility) > 100 and max(utility) > 10
    assert {"gradient", "loss_rate", "rtt_gradient", "rate_bps"} <= {*samples}
