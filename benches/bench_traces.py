"""Traces of the real BBRv3 and BBRv2 kernels in virtual time, run again on an engine of ours.

For each trace: share, goodput, mean cwnd, median queueing delay, and time in each phase, measured
by the same code on both sides, from 3 s after the last flow's start to the end. A trace is one draw
of what may be a chaotic contest, so the mean over our seeds is compared with it, and the table says
in how many seeds each figure alone is within its target. From 19 seeds on it also says whether the
trace lies inside the central 95 % of what the seeds span in share, goodput and queue, each figure
by itself and all together (inside.py). Recordings are kept in build/bench and found again as long
as nothing that decides their content changed.

Usage: `.venv/bin/python benches/bench_traces.py FOLDER... [--engine vm] [--seeds 8]
[--only s06,t01] [--tcp 6.12 | --kernel 6.1] [--idle] [--out DIR] [--csv FILE]`. The folders
have the traces (traces.py), which are not part of this repository. DIR gets one figure a trace:
kernel and ours over time, one above the other. The simulator's hosts are as busy as the traces'
were and its links carry what their routers did; `--idle`: hosts that have nothing to do, and the
rate that was set. `--csv FILE` writes a line for each figure of a trace, such as
docs/evidence/cells/traces_sim.csv.
A figure with a flow's name is that of the worst flow.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from inside import CENTRAL, LEAST_RUNS, Place, place
from machine import WORK
from runs import recordings
from trace_figures import draw_pair
from traces import Trace, load

from fullpipe.base.units import parse_time
from fullpipe.metrics import View, phase_shares, queue_bytes
from fullpipe.recording.recording import Recording

#: (engine, whose kernel) -> most that each figure may differ: shares absolute, goodput and cwnd
#: relative, queueing delay in RTTmin, phases as shares of time. The VM's are given for BBRv3 only.
TARGETS: dict[tuple[str, str], dict[str, float]] = {
    ("sim", "bbr3-linux"): {"share": 0.05, "goodput": 0.03, "queue": 0.15, "phase": 0.08},
    ("sim", "bbr2"): {"share": 0.07, "goodput": 0.03, "queue": 0.2},
    ("vm", "bbr3-linux"): {
        "share": 0.03, "goodput": 0.02, "cwnd": 0.05, "queue": 0.1, "phase": 0.05,
    },
    ("vm", "bbr2"): {"share": 0.07, "goodput": 0.03, "queue": 0.2},
}  # fmt: skip
TITLES = {
    "share": "share", "goodput": "goodput, Mbit/s", "cwnd": "mean cwnd, packets",
    "queue": "median queue, RTTmin", "phase": "time in phase, %",
}  # fmt: skip
RELATIVE = {"goodput", "cwnd"}
#: Display units of figures: shares of time in percentage points.
SCALE = {"goodput": 1e-6, "phase": 100.0}
DIGITS = {"share": 3, "goodput": 2, "cwnd": 1, "queue": 2, "phase": 1}
#: host.tcp of the traces' kernels: v3 was on 6.12, v2 on 6.1. Which stable releases is not said:
#: late ones, as s04's share and s02's goodput and queue say, which 6.12 as released misses by far.
OWN_TCP = {"bbr3-linux": "6.12.117", "bbr2": "6.1"}
#: The traces' hosts shared one processor that executes an instruction a nanosecond, as those of
#: our machine do: packets cost as much there (docs/evidence/agreement.md), and the least RTT says
#: so, 23 us
#: above the path's. It read the queues every 110 ms, which delayed the receivers: for 2 to 4 ms in
#: our machine with three short processes (docs/evidence/fidelity.md).
BUSY = {
    **WORK, "reader_pause": "3ms", "reader_pause_spread": "1ms", "reader_pause_every": "110ms",
}  # fmt: skip
#: More flows of one congestion control than this are interchangeable: their mean is compared.
MAX_FLOWS_EACH = 2
#: Figures that are compared with the seeds' range; cwnd and phases follow from them.
JUDGED = ("share", "goodput", "queue")
#: Flows that begin within so much of each other are interchangeable if their controls are.
TOGETHER_S = 1
#: kind -> what or whom -> value.
Figures = dict[str, dict[str, float]]


def measure(recording: Recording, bdp_bytes: float) -> Figures:
    """Every figure of a run; its queue in terms of the trace's path, not of the seed's own round
    trip and rate."""
    view = View(recording)
    names, ccs = [str(n) for n in view.flows["flow"]], [str(c) for c in view.flows["cc"]]
    rates = np.array([_rate_bps(view, flow) for flow in range(len(names))])
    # Where congestion controls compete, each one's flows together; else each flow.
    sharers = ccs if len(set(ccs)) > 1 else names
    groups = [
        name if ccs.count(cc) <= MAX_FLOWS_EACH else cc for name, cc in zip(names, ccs, strict=True)
    ]
    windows = [float(np.mean(view.flow_samples(i)["cwnd_packets"])) for i in range(len(names))]
    phases = [phase_shares(view, flow) for flow in range(len(names))]
    seen = sorted({phase for shares in phases for phase in shares})
    return {
        "share": {
            who: float(sum(rates[i] for i, s in enumerate(sharers) if s == who) / rates.sum())
            for who in dict.fromkeys(sharers)
        },
        "goodput": {"all": float(rates.sum())},
        "cwnd": _means(groups, windows),
        "queue": {"": float(np.median(queue_bytes(view))) / bdp_bytes},
        "phase": {
            f"{who} {phase}": value
            for phase in seen
            for who, value in _means(
                [group for group, shares in zip(groups, phases, strict=True) if shares],
                [shares.get(phase, 0.0) for shares in phases if shares],
            ).items()
        },
    }


def _rate_bps(view: View, flow: int) -> float:
    """Payload delivered between a flow's first and last sample in the window, over the time
    between, as TCP counts it: traces do not say what the receiver got, and what was acknowledged
    in order would leave out all that waits beyond a hole at either end."""
    samples, mss_bytes = view.flow_samples(flow), int(view.flows["mss_bytes"][flow])
    times, packets = samples["t_us"] / 1e6, samples["packets_delivered"]
    return float(8 * mss_bytes * (packets[-1] - packets[0]) / (times[-1] - times[0]))


def _means(groups: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return {
        group: float(np.mean([v for g, v in zip(groups, values, strict=True) if g == group]))
        for group in dict.fromkeys(groups)
    }


@dataclass(frozen=True)
class Line:
    """One kind of figure of one trace: whose differs most, there and here."""

    kind: str
    whose: str
    kernel: float
    mean: float
    low: float
    high: float
    #: Of the mean over seeds: relative for RELATIVE, else absolute.
    differs: float
    target: float | None
    #: Seeds whose every figure of this kind is within the target by itself.
    within: int
    seeds: int

    @property
    def mark(self) -> str:
        """`ok`, `MISS`, or nothing where there is no target."""
        if self.target is None:
            return ""
        return "ok" if abs(self.differs) <= self.target else "MISS"


def compare(trace: Trace, kernel: Figures, ours: Sequence[Figures], engine: str) -> list[Line]:
    """One line for each kind of figure."""
    alone = len(kernel["share"]) == 1
    kinds = [kind for kind in TITLES if kernel[kind] and not (alone and kind == "share")]
    return [_line(kind, trace, kernel, ours, engine) for kind in kinds]


def _line(kind: str, trace: Trace, kernel: Figures, ours: Sequence[Figures], engine: str) -> Line:
    target = TARGETS[engine, trace.version].get(kind)
    everyone = dict.fromkeys([*kernel[kind], *(who for run in ours for who in run[kind])])
    if kind == "phase":  # of flows whose phases the trace has
        known = {who.split()[0] for who in kernel[kind]}
        everyone = {who: None for who in everyone if who.split()[0] in known}
    values = {who: np.array([run[kind].get(who, 0.0) for run in ours]) for who in everyone}
    differ = {
        who: (values[who] - kernel[kind].get(who, 0.0))
        / (kernel[kind][who] if kind in RELATIVE else 1.0)
        for who in everyone
    }
    whose = max(everyone, key=lambda who: abs(differ[who].mean()))
    within = np.all([np.abs(d) <= (target or 0.0) for d in differ.values()], axis=0)
    mine = values[whose]
    return Line(
        kind, whose, kernel[kind].get(whose, 0.0), float(mine.mean()), float(mine.min()),
        float(mine.max()), float(differ[whose].mean()), target, int(within.sum()), len(ours),
    )  # fmt: skip


def judged(trace: Trace, run: Figures) -> dict[str, float]:
    """One number for each judged kind: of interchangeable flows the winner's share."""
    flows, shares = trace.document["flow"], run["share"]
    starts_s = [parse_time(flow["start"]) / 1e9 for flow in flows]
    is_alike = len({flow["cc"] for flow in flows}) == 1
    if is_alike and max(starts_s) - min(starts_s) < TOGETHER_S:
        share = max(shares.values())
    else:
        share = next(iter(shares.values()))
    numbers = {"share": share, "goodput": run["goodput"]["all"], "queue": run["queue"][""]}
    return {kind: numbers[kind] for kind in JUDGED if kind != "share" or len(shares) > 1}


def sentence(found: Place) -> str:
    """A trace's place among the seeds."""
    parts = [
        f"{kind} {value:+.1f}{' OUT' * (kind in found.outside)}"
        for kind, value in found.deviations.items()
    ]
    verdict = "inside" if found.is_inside else "OUT"
    return f"{', '.join(parts)}; together {verdict} (p {found.together:.2f})"


def summary(places: Sequence[Place]) -> str:
    """All traces' places, and what chance would leave inside."""
    whole = len(places)
    alone = sum(not found.outside for found in places)
    expected = sum(CENTRAL ** len(found.deviations) for found in places)
    sides = []
    for kind in JUDGED:
        values = [found.deviations[kind] for found in places if kind in found.deviations]
        high, low = sum(v > 1 for v in values), sum(v < -1 for v in values)
        sides.append(f"{kind} {high} above and {low} below of {len(values)}")
    return (
        f"inside with all figures together: {sum(found.is_inside for found in places)} of {whole}\n"
        f"inside with every figure by itself: {alone} of {whole} (by chance {expected:.1f}), "
        f"that is off by less than {places[0].bound:.1f} standard deviations\n"
        f"traces beyond one standard deviation: {'; '.join(sides)}"
    )


def text(trace: Trace, lines: Sequence[Line], found: Place | None) -> str:
    """A trace's table, at most 100 columns wide."""
    rows = [f"{trace.key}: {trace.title}"]
    if trace.carried is not None:
        part, deviation = trace.carried.part, trace.carried.deviation
        row = f"  its router carried {part:.5f} +- {deviation:.5f} of the rate while packets waited"
        if trace.carried.is_less:
            every_s, for_s = trace.looked_every_s, trace.stands_s(part)
            row += f": still for {1e3 * for_s:.1f} of {1e3 * every_s:.0f} ms"
        rows.append(row)
    for line in lines:
        scale, digits = SCALE.get(line.kind, 1.0), DIGITS[line.kind]
        what = f"{TITLES[line.kind]}{' ' * bool(line.whose)}{line.whose}"
        spread = f"({line.low * scale:.{digits}f} to {line.high * scale:.{digits}f})"
        row = (
            f"  {what:<38.38} {line.kernel * scale:>7.{digits}f} {line.mean * scale:>7.{digits}f} "
            f"{spread if line.seeds > 1 else '':<19} {_difference(line):>8}"
        )
        if line.target is not None:
            row += f" {line.mark:<4} {line.within}/{line.seeds}"
        rows.append(row)
    if found is not None:
        rows.append(f"  off by, standard deviations: {sentence(found)}")
    return "\n".join(rows)


def _difference(line: Line) -> str:
    if line.kind in RELATIVE:
        return f"{100 * line.differs:+.1f} %"
    scale = SCALE.get(line.kind, 1.0)
    return f"{line.differs * scale:+.{DIGITS[line.kind]}f}"


def write_csv(file: Path, compared: Sequence[tuple[Trace, Sequence[Line], Place | None]]) -> None:
    """A line for each figure of each trace: the trace's, the mean of ours, and the verdict."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([
            "trace", "title", "figure", "of", "kernel", "ours", "difference", "within_target",
            "seeds", "verdict", "deviations", "together_p",
        ])  # fmt: skip
        for trace, lines, found in compared:
            for line in lines:
                scale, digits = SCALE.get(line.kind, 1.0), DIGITS[line.kind]
                has_target = line.target is not None
                deviation = None if found is None else found.deviations.get(line.kind)
                writer.writerow([
                    trace.key, trace.title, TITLES[line.kind],
                    line.whose if line.whose != "all" else "",
                    f"{line.kernel * scale:.{digits}f}", f"{line.mean * scale:.{digits}f}",
                    _difference(line), line.within if has_target else "", line.seeds,
                    line.mark.lower(), "" if deviation is None else f"{deviation:.1f}",
                    "" if found is None else f"{found.together:.2f}",
                ])  # fmt: skip


def repeated(document: dict[str, Any], seeds: int) -> list[dict[str, Any]]:
    """The runs of a trace's path with so many seeds: one as it is, or several, each with starts and
    a phase of its own, as nothing else differs between seeds before the first loss."""
    if seeds == 1:
        return [{**document, "seed": 1}]
    document = {**document, "start_spread": "5ms", "rtt_spread": "1pkt"}
    return [{**document, "seed": seed} for seed in range(1, seeds + 1)]


def over_its_router(document: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """A run over a link that carries what the trace's router did by its own counter, drawn from
    what its stamps leave open. Where it lacked something beyond doubt it stands still each time
    that the queue is looked at, first at a time that is drawn too; else its rate is lower."""
    carried = trace.carried
    if carried is None:
        return document
    draw = random.Random(f"{trace.key} {document['seed']}")
    part = min(draw.gauss(carried.part, carried.deviation), 1.0)
    path = document["path"]
    if not carried.is_less:
        return document | {"path": path | {"rate": f"{trace.rate_bps * part:.0f}bit"}}
    every_s, for_s = trace.looked_every_s, trace.stands_s(part)
    first_s = draw.uniform(0, every_s)
    count = int((parse_time(document["duration"]) / 1e9 - first_s) / every_s)
    starts_s = [first_s + every_s * index for index in range(count)]
    link = {
        "name": "router", "rate": path["rate"], "buffer": path["buffer"], "delay": "0s",
        "outage": [[f"{1e6 * at_s:.0f}us", f"{1e6 * for_s:.0f}us"] for at_s in starts_s],
        "reverse": {"delay": path["rtt"]},
    }  # fmt: skip
    return {key: value for key, value in document.items() if key != "path"} | {"link": [link]}


def main() -> None:
    """Runs the traces' paths and prints the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["sim", "vm"], default="sim")
    parser.add_argument("--seeds", type=int, help="runs of each path; sim 8, vm 1")
    parser.add_argument("--only", help="traces, such as s06,t01; default: all")
    parser.add_argument("folders", nargs="+", type=Path, help="folders of traces")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument(
        "--background-processes", type=int, default=0, metavar="N",
        help="vm: started every 110 ms on the measured host, as the traces' queues were read",
    )  # fmt: skip
    parser.add_argument("--kernel", help="vm: 6.1, 6.12, 7.3 or an image; 6.12")
    parser.add_argument("--tcp", help="sim: host.tcp of all, such as 6.12; the traces' kernels'")
    parser.add_argument(
        "--idle", action="store_true", help="sim: hosts with nothing to do, links of the set rate"
    )
    parser.add_argument("--out", type=Path, help="folder for figures")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="writes every figure")
    options = parser.parse_args()
    seeds = options.seeds or (8 if options.engine == "sim" else 1)
    wanted = options.only.split(",") if options.only else None
    traces = [t for folder in options.folders for t in load(folder)]
    traces = [t for t in traces if wanted is None or t.key in wanted]
    count = options.background_processes
    extra = {"background_processes": str(count)} if count else {}
    extra |= {"kernel": options.kernel} if options.kernel else {}
    compared, missed = list[tuple[Trace, Sequence[Line], Place | None]](), 0
    for trace in traces:
        host = dict(trace.document["host"])
        if options.engine == "sim":
            host |= {"tcp": options.tcp or OWN_TCP[trace.version]} | ({} if options.idle else BUSY)
        documents = repeated({**trace.document, "host": host}, seeds)
        if options.engine == "sim" and not options.idle:
            documents = [over_its_router(document, trace) for document in documents]
        made = recordings(documents, options.engine, options.jobs, **extra)
        with tempfile.TemporaryDirectory() as folder:
            kernel = trace.recording(Path(folder) / trace.key)
            theirs, ours = (
                [measure(run, trace.bdp_bytes) for run in runs] for runs in ([kernel], made)
            )
            lines = compare(trace, theirs[0], ours, options.engine)
            found = None
            if seeds >= LEAST_RUNS:
                found = place(judged(trace, theirs[0]), [judged(trace, run) for run in ours])
            if options.out is not None:
                draw_pair(kernel, made[0], trace.title, options.out / f"{trace.key}.png")
        compared.append((trace, lines, found))
        missed += sum(line.mark == "MISS" for line in lines)
        print(text(trace, lines, found), flush=True)
    places = [found for *_, found in compared if found is not None]
    if options.csv is not None:
        write_csv(options.csv, compared)
    print(
        f"columns: kernel, mean of {seeds} seed(s) of ours (least to most), difference, "
        f"verdict, seeds within\n{missed} figure(s) beyond their target"
    )
    if places:
        print(summary(places))


if __name__ == "__main__":
    main()
