"""Ranks pairs of queue discipline and congestion control for a path: runs every pair on it and
scores the runs by a goal. Must never know how a table is printed.

The score is utilisation^a x (base RTT / 95th percentile of the loaded RTT)^b x Jain^c, a
generalised power (Giessler et al. 1978; Kleinrock 1979); `GOALS` has the exponents.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from fullpipe.base.errors import RunError, UserError
from fullpipe.base.packets import FULL_FRAME_BYTES
from fullpipe.base.units import format_size
from fullpipe.engines.run import runs_of
from fullpipe.engines.runner import execute
from fullpipe.metrics import summarise
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import Scenario, make_scenario

#: Queue (as tables call it) -> keys of [path].
QUEUES: dict[str, dict[str, Any]] = {
    "fifo 1 BDP": {"qdisc": "fifo", "buffer": "1bdp"},
    "fifo 4 BDP": {"qdisc": "fifo", "buffer": "4bdp"},
    "codel": {"qdisc": "codel"},
    "pie": {"qdisc": "pie"},
    "fq_codel": {"qdisc": "fq_codel"},
    "cake": {"qdisc": "cake"},
}
CONTROLS = ("cubic", "bbr1", "bbr3")
#: Goal -> exponents of utilisation, of delay, of Jain's index.
GOALS = {
    "balance": (1.0, 1.0, 1.0),
    "throughput": (4.0, 0.5, 1.0),
    "latency": (1.0, 2.0, 1.0),
    "fair": (1.0, 0.5, 4.0),
}
#: Wanted duration of a run, and the packet budget of all runs together.
WANTED_S, PACKETS = 30.0, 24_000_000
#: A run of fewer base RTTs than this is dominated by start-up.
FEW_RTTS = 150
PAGE_BYTES = 100 * 1024
_FRAME_BITS = 8 * FULL_FRAME_BYTES
#: Pages of one run at most.
MAX_PAGES = 300


@dataclass(frozen=True)
class Question:
    """The path to choose for, in the user's notation."""

    rate: str
    rtt: str
    web: float
    goal: str


@dataclass(frozen=True)
class Length:
    """How long each run lasts, and what was cut from WANTED_S for it."""

    duration_s: float
    warmup_s: float
    pages: int
    cut: str


@dataclass(frozen=True)
class Option:
    """One pair and its results. `page_p95_s` is None without pages; `why` compares the pair with
    the best of each kind."""

    queue: str
    cc: str
    goodput_bps: float
    utilisation: float
    ping_p95_ms: float
    added_p95_ms: float
    page_p95_s: float | None
    jain: float
    score: float
    why: str


def choose(
    path: Question,
    out: Path,
    on_progress: Callable[[float], None] = lambda _share: None,
    workers: int = 2,
) -> tuple[list[Option], Length, list[Recording]]:
    """Runs every pair and returns them best first, how long each ran, and the recordings in the
    same order. Raises UserError for a path that is none, RunError if a run fails."""
    if path.goal not in GOALS:
        raise UserError(f"--for {path.goal}: unknown; known are {', '.join(GOALS)}")
    probe = Length(1, 0, 0, "")
    base = make_scenario(_document(path, "fifo 1 BDP", CONTROLS[0], probe), "choose")
    pairs = [(queue, cc) for queue in QUEUES for cc in CONTROLS]
    length = _length(base, path.web, len(pairs))
    documents = [_document(path, queue, cc, length) for queue, cc in pairs]
    scenarios = [make_scenario(document, "choose") for document in documents]
    recordings = _run_all(scenarios, documents, out, on_progress, workers)
    measured = [
        _measure(queue, cc, base, recording, GOALS[path.goal])
        for (queue, cc), recording in zip(pairs, recordings, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda index: -measured[index].score)
    ranked = _explained([measured[index] for index in order])
    return ranked, length, [recordings[index] for index in order]


def _length(base: Scenario, web: float, runs: int) -> Length:
    rate_bps, rtt_s = base.path.rate, base.path.rtt / 1e9
    affordable_s = PACKETS / runs * _FRAME_BITS / rate_bps
    wanted_s = max(WANTED_S, 2 * FEW_RTTS * rtt_s)
    duration_s = min(wanted_s, affordable_s)
    # Round, so that the scenario stays readable.
    duration_s = float(f"{duration_s:.2g}")
    rtts = duration_s / rtt_s
    cut = ""
    if duration_s < wanted_s:
        cut = f"each run lasts {duration_s:g} s ({rtts:.0f} RTTs) instead of {wanted_s:g} s"
        if rtts < FEW_RTTS:
            cut += "; that short, start-up is much of what is seen"
    warmup_s = min(5.0, duration_s / 5)
    wanted_pages = math.ceil(web * rate_bps * duration_s / (8 * PAGE_BYTES)) if web else 0
    pages = min(wanted_pages, MAX_PAGES)
    if pages < wanted_pages:
        size = format_size(wanted_pages / pages * PAGE_BYTES)
        pages_cut = f"{pages} pages of {size} stand for {wanted_pages} of 100 KiB"
        cut = f"{cut}; {pages_cut}" if cut else pages_cut
    return Length(duration_s, warmup_s, pages, cut)


def _document(path: Question, queue: str, cc: str, length: Length) -> dict[str, Any]:
    """Two flows that always send, pages as many as `web` of the rate takes, and a ping."""
    step_ms = length.duration_s * 1e3 / 300
    flows: list[dict[str, Any]] = [{"cc": cc, "name": "bulk", "count": 2}]
    document: dict[str, Any] = {
        "name": f"{queue}, {cc}",
        "duration": f"{length.duration_s:g}s",
        "warmup": f"{length.warmup_s:g}s",
        "sample_interval": f"{max(1.0, step_ms):.3g}ms",
        "path": {"rate": path.rate, "rtt": path.rtt, **QUEUES[queue]},
        "flow": flows,
        "probe": [{"kind": "ping", "interval": f"{max(1.0, step_ms / 3):.3g}ms"}],
    }
    if length.pages:
        last_s = 0.95 * length.duration_s
        rate_bps = make_scenario(document, "choose").path.rate
        volume = path.web * rate_bps * length.duration_s / 8 / length.pages
        flow = {
            "cc": cc,
            "name": "page",
            "count": length.pages,
            "amount": f"{math.ceil(volume)}B",
            "start_step": f"{last_s / length.pages * 1e6:.0f}us",
        }
        flows.append(flow)
    return document


def _run_all(
    scenarios: Sequence[Scenario],
    documents: Sequence[dict[str, Any]],
    out: Path,
    on_progress: Callable[[float], None],
    workers: int,
) -> list[Recording]:
    """Runs all pairs on threads: the simulator releases Python's lock."""
    shares, stop = [0.0] * len(scenarios), threading.Event()

    def run(index: int) -> Recording:
        def progress(share: float) -> None:
            if stop.is_set():
                raise RunError("interrupted")
            shares[index] = share
            on_progress(sum(shares) / len(shares))

        toml = tomli_w.dumps(documents[index])
        runs = runs_of(scenarios[index], toml, [scenarios[index].seed])
        outcome = execute(runs, [out / f"run-{index:03d}"], progress)
        if outcome.failures:
            raise RunError("; ".join(outcome.failures))
        return outcome.recordings[0]

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run, index) for index in range(len(scenarios))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def _measure(
    queue: str, cc: str, base: Scenario, recording: Recording, goal: tuple[float, float, float]
) -> Option:
    summary = summarise(recording)
    rtt_ms = base.path.rtt / 1e6
    utilisation = summary["path"]["utilisation"] or 0.0
    # No answer at all is worse than any answer: it counts as the length of the run.
    ping_ms = summary["ping_ms"]["p95"] or recording.metadata["plan"]["duration_ns"] / 1e6
    pages = summary["groups"][1]["completion_s"]["p95"] if len(summary["groups"]) > 1 else None
    jain = summary["jain"] or 0.5
    a, b, c = goal
    score = utilisation**a * min(1.0, rtt_ms / ping_ms) ** b * jain**c
    return Option(
        queue,
        cc,
        goodput_bps=summary["goodput_bps"] or 0.0,
        utilisation=utilisation,
        ping_p95_ms=ping_ms,
        added_p95_ms=max(0.0, ping_ms - rtt_ms),
        page_p95_s=pages,
        jain=jain,
        score=score,
        why="",
    )


def _explained(ranked: Sequence[Option]) -> list[Option]:
    """The options, each compared with the best of each kind."""
    fastest = max(option.goodput_bps for option in ranked)
    least_ms = min(option.ping_p95_ms for option in ranked)
    pages = [option.page_p95_s for option in ranked if option.page_p95_s is not None]
    explained = []
    for option in ranked:
        reasons = []
        if fastest and option.goodput_bps < 0.95 * fastest:
            reasons.append(f"{100 * (1 - option.goodput_bps / fastest):.0f} % slower")
        if option.ping_p95_ms > 1.2 * least_ms:
            reasons.append(f"waits +{option.ping_p95_ms - least_ms:.3g} ms")
        if option.jain < 0.95:
            reasons.append("uneven")
        if option.page_p95_s is not None and option.page_p95_s > 1.5 * min(pages):
            reasons.append(f"pages x {option.page_p95_s / min(pages):.1f}")
        why = ", ".join(reasons) or "near the best"
        explained.append(replace(option, why=why))
    return explained
