"""Links that change, and a row of three, in the simulator against the virtual machine's kernel.

Six schedules, one flow each: the rate times 10, a tenth of it, an outage of 2 s, a sawtooth, LEO
hand-overs and a cellular random walk (generated traces, which the kernel's htb follows in steps of
20 ms). For each: mean goodput, and the 95th percentile of a ping's time above the link's delays.
Then the parking lot: three links, one long Reno flow and three short ones, over RED, which meets
the law's assumption that every packet is dropped alike, and over drop tail, which does not
(docs/paths.md). Exit status 1 where a target is missed.

The simulator's figures are means over `--seeds` runs; the machine runs once.

Usage: `.venv/bin/python benches/bench_changes.py [--only PART] [--cc cubic] [--seeds 3]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from runs import FOLDER, recordings

from fullpipe import _native
from fullpipe.metrics import View
from fullpipe.metrics.flows import delivered_bytes
from fullpipe.recording import Recording
from fullpipe.trace_generators import Shape, generate

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
    found = {
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


def document(name: str, link: Mapping[str, Any], cc: str, seed: int) -> dict[str, Any]:
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


LOTS: dict[str, dict[str, Any]] = {
    "parking, RED": {
        "buffer": "160KB", "qdisc": "red",
        "qdisc_options": {"min": "20KB", "max": "80KB", "max_probability": "0.05"},
    },
    "parking, tail": {"buffer": "40KB"},
}  # fmt: skip


def parking_lot(name: str, seed: int) -> dict[str, Any]:
    """Three links in a row, one flow over all and one over each."""
    link = {"rate": "8mbit", "delay": "5ms", **LOTS[name]}
    names = ("first", "second", "third")
    return {
        "name": name,
        "seed": seed,
        "duration": "40s",
        "warmup": "5s",
        "link": [{"name": name, **link} for name in names],
        "flow": [
            {"cc": "reno", "name": "long"},
            *(
                {"cc": "reno", "name": name, "enter": name, "leave": name, "start": f"{n}37ms"}
                for n, name in enumerate(names, 1)
            ),
        ],
    }


def long_share(recording: Recording) -> float:
    """What the long flow has of the mean link."""
    parts = delivered_bytes(View(recording))
    return float(3 * parts[0] / (3 * parts[0] + parts[1:].sum()))


def law_share(recording: Recording) -> float:
    """The same by the law of Floyd 1991: rates as 1 / (RTT sqrt(loss)), with the RTTs that the
    flows had and three times the loss for the long one."""
    samples = recording.table("flow_samples").to_pydict()
    rows = list(zip(samples["flow_id"], samples["srtt_us"], strict=True))
    rtts = [
        float(np.mean([rtt for flow, rtt in rows if flow == wanted and rtt])) for wanted in range(4)
    ]
    ratio = float(np.mean(rtts[1:])) / rtts[0] / np.sqrt(3)
    return float(ratio / (1 + ratio))


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="schedules whose names contain this")
    parser.add_argument("--cc", default="cubic")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    print(f"{'schedule':14} {'goodput Mbit/s':>18} {'':>7} {'p95 above base ms':>20}")
    for name, link in schedules(FOLDER / "traces").items():
        if options.only not in name:
            continue
        made = [
            recordings(
                [document(name, link, options.cc, seed + 1) for seed in range(count)],
                engine, options.jobs,
            )
            for engine, count in (("sim", options.seeds), ("vm", 1))
        ]  # fmt: skip
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
        made = [
            recordings([parking_lot(name, seed + 1) for seed in range(count)], engine, options.jobs)
            for engine, count in (("sim", options.seeds), ("vm", 1))
        ]
        ours, theirs = (float(np.mean([long_share(one) for one in runs])) for runs in made)
        law = float(np.mean([law_share(one) for one in made[0]]))
        missed = ["share"] if abs(ours - theirs) > SHARE else []
        missed += ["law"] if abs(ours / law - 1) > LAW else []
        failed += bool(missed)
        print(
            f"{name:14} share of the long flow {ours:.3f} / {theirs:.3f}, by the law {law:.3f}  "
            f"{' '.join(missed) or 'ok'}",
            flush=True,
        )
    print(
        f"sim / vm; targets: goodput within {GOODPUT:.0%}, delay within {DELAY:.0%}, "
        f"share within {SHARE}, and within {LAW:.0%} of the law; missed on {failed}"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
