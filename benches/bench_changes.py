"""Links that change, and a row of three, in the simulator against the virtual machine's kernel.

Six schedules, one flow each: the rate times 10, a tenth of it, an outage of 2 s, a sawtooth, LEO
hand-overs and a cellular random walk (generated traces, which the kernel's htb follows in steps of
20 ms). For each: mean goodput, and the 95th percentile of a ping's time above the link's delays.
Then the parking lot: three links, one long Reno flow and three short ones. Over RED every packet is
dropped alike, so the long flow meets three times the loss. Over drop tail it meets what it meets:
there the law is given the loss events that each flow had. In phase such flows share as chance has
it (docs/reference/links.md), so engines are compared where jitter breaks phases, and without only
shown.
Exit status 1 where a target is missed.

Figures of the simulator are means over `--seeds` runs; the machine runs schedules once and parking
lots with `--vm-seeds` seeds.

Usage: `.venv/bin/python benches/bench_changes.py [--only PART] [--cc cubic] [--seeds 8]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from runs import FOLDER, arguments, pair

from fullpipe import _native
from fullpipe.metrics import View
from fullpipe.metrics.flows import delivered_bytes
from fullpipe.recording.recording import Recording
from fullpipe.scenario.link_trace_generators import Shape, generate

#: Targets: relative difference of goodput and of the delay, difference of shares, relative
#: difference of the long flow's share from the law's.
GOODPUT, DELAY, SHARE, LAW = 0.03, 0.15, 0.03, 0.1
SECONDS, WARMUP_S = 20, 2
#: One way; what `leo` adds follows its trace.
DELAY_ONE_WAY_MS = 15.0


def schedules(folder: Path) -> dict[str, dict[str, Any]]:
    """Keys of the link of each schedule; traces are written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"delay": f"{DELAY_ONE_WAY_MS:g}ms", "buffer": "60KB"}
    found: dict[str, dict[str, Any]] = {
        "x 10": {**plain, "rate": "1mbit", "rate_steps": [["8s", "10mbit"]]},
        "/ 10": {**plain, "rate": "10mbit", "rate_steps": [["8s", "1mbit"]]},
        "outage 2 s": {**plain, "rate": "8mbit", "outage": [["8s", "2s"]]},
    }
    for kind in ("sawtooth", "leo", "cellular"):
        made = generate(kind, Shape(8_000_000, 30, seed=3, low=0.2))
        (folder / f"{kind}.trace").write_text(made.rate_text())
        found[kind] = {**plain, "rate_trace": str((folder / f"{kind}.trace").resolve())}
        if made.delays_ms:
            (folder / f"{kind}.delay").write_text(made.delay_text())
            del found[kind]["delay"]
            found[kind]["delay_trace"] = str((folder / f"{kind}.delay").resolve())
            found[kind]["reverse"] = {"delay": plain["delay"]}
    return found


def document(
    name: str, link: Mapping[str, Any], cc: str, _engine: str, seed: int
) -> dict[str, Any]:
    """The scenario of a schedule."""
    return {
        "name": name,
        "seed": seed,
        "duration": f"{SECONDS}s",
        "warmup": f"{WARMUP_S}s",
        "link": [{"name": "link", **link}],
        "flow": [{"cc": cc}],
        "probe": [{"interval": "20ms", "start": f"{WARMUP_S}s"}],
    }


def figures(recording: Recording, link: Mapping[str, Any]) -> tuple[float, float]:
    """Goodput in Mbit/s, and the 95th percentile of a ping above the link's delays, in ms."""
    view = View(recording)
    goodput = float(delivered_bytes(view).sum()) * 8 / (SECONDS - WARMUP_S) / 1e6
    pings = recording.table("ping_samples").to_pydict()
    sent_ms = np.array(pings["t_us"]) / 1e3
    rtt_ms = np.array(pings["rtt_us"], dtype=float) / 1e3
    base_ms = 2 * DELAY_ONE_WAY_MS
    if "delay_trace" in link:
        steps = np.array(_native.traces.delays(str(link["delay_trace"]), SECONDS * 10**9)) / 1e6
        place = np.searchsorted(steps[:, 0], sent_ms, side="right") - 1
        return goodput, _p95(rtt_ms - steps[place, 1] - DELAY_ONE_WAY_MS)
    return goodput, _p95(rtt_ms - base_ms)


def _p95(values: Any) -> float:
    return float(np.nanpercentile(values, 95))


def floyd_loss(_: Recording) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Three times the loss for the long flow (Floyd 1991)."""
    return np.array([3.0, 1.0, 1.0, 1.0])


def loss_events(recording: Recording) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Loss events of each flow (a window with losses is one) for each packet that it sent."""
    flows = np.array(recording.table("events").column("flow_id").to_pylist(), dtype=float)
    events = recording.table("events").column("event").to_pylist()
    is_loss = np.isin(events, ["recovery", "rto"])
    sent = recording.table("flows").column("packets_sent").to_pylist()
    return np.array([(is_loss & (flows == flow)).sum() / sent[flow] for flow in range(4)])


@dataclass(frozen=True)
class Lot:
    """A parking lot: keys of its links and flows, what is known of its loss, and whether one run is
    like another, so that engines can be held against one another."""

    link: dict[str, Any]
    flow: dict[str, Any]
    loss: Callable[[Recording], np.ndarray[Any, np.dtype[np.float64]]]
    settles: bool = True


RED = {"min": "20KB", "max": "80KB", "max_probability": "0.05"}
LOTS = {
    "parking, RED": Lot({"buffer": "160KB", "qdisc": "red", "qdisc_options": RED}, {}, floyd_loss),
    "parking, tail and jitter": Lot({"buffer": "80KB"}, {"jitter": "5ms"}, loss_events),
    "parking, tail": Lot({"buffer": "40KB"}, {}, loss_events, settles=False),
}


def parking_lot(name: str, seed: int) -> dict[str, Any]:
    """Three links in a row, one flow over all and one over each."""
    lot = LOTS[name]
    link = {"rate": "8mbit", "delay": "5ms", **lot.link}
    names = ("first", "second", "third")
    return {
        "name": name,
        "seed": seed,
        "duration": "40s",
        "warmup": "5s",
        "start_spread": "500ms",
        "link": [{"name": name, **link} for name in names],
        "flow": [
            {"cc": "reno", "name": "long", **lot.flow},
            *(
                {
                    "cc": "reno", "name": name, "enter": name, "leave": name, "start": f"{n}37ms",
                    **lot.flow,
                }
                for n, name in enumerate(names, 1)
            ),
        ],
    }  # fmt: skip


def long_share(recording: Recording) -> float:
    """What the long flow has of the mean link."""
    parts = delivered_bytes(View(recording))
    return float(3 * parts[0] / (3 * parts[0] + parts[1:].sum()))


def law_share(recording: Recording, lot: Lot) -> float:
    """The same by the law: rates as 1 / (RTT sqrt(loss)), with the RTTs that the flows had."""
    samples = recording.table("flow_samples").to_pydict()
    rows = list(zip(samples["flow_id"], samples["srtt_us"], strict=True))
    rtts = [
        float(np.mean([rtt for flow, rtt in rows if flow == wanted and rtt])) for wanted in range(4)
    ]
    rates = 1 / (np.array(rtts) * np.sqrt(lot.loss(recording)))
    return float(3 * rates[0] / (3 * rates[0] + rates[1:].sum()))


def show_lot(name: str, seeds: int, vm_seeds: int, jobs: int) -> bool:
    """Runs and prints one; whether a target is missed."""
    lot = LOTS[name]
    made = pair(lambda _, seed: parking_lot(name, seed), (seeds, vm_seeds), jobs)
    ours, theirs = (np.array([long_share(one) for one in runs]) for runs in made)
    laws = np.array([law_share(one, lot) for one in made[0]])
    missed = ["law"] if abs(ours.mean() / laws.mean() - 1) > LAW else []
    if lot.settles and abs(ours.mean() - theirs.mean()) > SHARE:
        missed.append("share")
    print(
        f"{name:24} share of the long flow {ours.mean():.3f} ({ours.min():.3f} to {ours.max():.3f})"
        f" / {theirs.mean():.3f} ({theirs.min():.3f} to {theirs.max():.3f}), by the law "
        f"{laws.mean():.3f}, in one run at most {np.abs(ours - laws).max():.3f} from it  "
        f"{' '.join(missed) or 'ok'}",
        flush=True,
    )
    return bool(missed)


def main() -> None:
    """Runs and prints."""
    parser = arguments(__doc__, 8, 3)
    parser.add_argument("--cc", default="cubic")
    options = parser.parse_args()
    failed = 0
    print(f"{'schedule':14} {'goodput Mbit/s':>18} {'':>7} {'p95 above base ms':>20}")
    for name, link in schedules(FOLDER / "traces").items():
        if options.only not in name:
            continue
        schedule = partial(document, name, link, options.cc)
        made = pair(schedule, (options.seeds, 1), options.jobs)
        sim, vm = (np.mean([figures(one, link) for one in runs], axis=0) for runs in made)
        change = float(sim[0] / vm[0] - 1)
        missed = ["goodput"] if abs(change) > GOODPUT else []
        if abs(sim[1] / vm[1] - 1) > DELAY:
            missed.append("delay")
        failed += bool(missed)
        print(
            f"{name:14} {sim[0]:8.3f} / {vm[0]:7.3f} {change:+7.1%} {sim[1]:9.1f} / {vm[1]:7.1f} "
            f"{sim[1] / vm[1] - 1:+7.1%}  {' '.join(missed) or 'ok'}",
            flush=True,
        )
    for name in (name for name in LOTS if options.only in name):
        failed += show_lot(name, options.seeds, options.vm_seeds, options.jobs)
    print(
        f"sim / vm; targets: goodput within {GOODPUT:.0%}, delay within {DELAY:.0%}, "
        f"share within {SHARE}, and within {LAW:.0%} of the law; missed on {failed}"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
