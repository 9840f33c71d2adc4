"""Queue disciplines in the simulator against the same kernel modules in the virtual machine.

24 paths: every tin mode of CAKE, host isolation, the ACK filter on asymmetric links, ATM and PTM
framing, PIE, FQ-PIE, SFQ, FQ-CoDel, prio, TBF; two to nine flows of several congestion controls.
For each: the largest difference of a flow's share, the median queueing delay (of the flows' RTT
samples, above their base RTT), drops and marks of the queue that matters. Exit status 1 where a
target is missed.

Where disciplines draw random numbers, or flows share one queue, one run says little: the
simulator's figures are means over `--seeds` runs, the machine's over `--vm-seeds`, both over more
where a path says so. The simulator tells congestion controls what a stock kernel does.

Usage: `.venv/bin/python benches/bench_queues.py [--only PART] [--seeds 8] [--vm-seeds 1]`. With
`--engine live` this host's kernel takes the machine's place (docs/background/live.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from runs import arguments, pair

from fullpipe.metrics import View
from fullpipe.metrics.flows import delivered_bytes
from fullpipe.recording.recording import Recording

WARMUP_S = 3
#: Targets: difference of shares, relative difference of the delay or ms, of drops and marks.
SHARE, DELAY, DELAY_MS, COUNT = 0.03, 0.15, 1.0, 0.2
#: Below so many drops or marks a difference of a few is chance.
FEW = 10


@dataclass(frozen=True)
class Path:
    """One path: a name, keys of `[path]`, its flows, the queue whose counters are compared, and the
    runs of the machine that its spread asks for (of the simulator twice as many)."""

    name: str
    path: dict[str, Any]
    flows: Sequence[dict[str, Any]]
    queue: str = "forward"
    seconds: int = 12
    vm_seeds: int = 1

    def document(self, engine: str, seed: int) -> dict[str, Any]:
        """The scenario."""
        return {
            "name": self.name,
            "seed": seed,
            "duration": f"{self.seconds}s",
            "warmup": f"{WARMUP_S}s",
            "sample_interval": "20ms",
            # Random starts, so that seeds sample the contest and not one start.
            "start_spread": "100ms",
            "path": {"rate": "10mbit", "rtt": "40ms", **self.path},
            "host": {"cc_facts": "stock"} if engine == "sim" else {},
            # Flows that start together would stay synchronised.
            "flow": [{"start": f"{207 * n}ms", **flow} for n, flow in enumerate(self.flows)],
        }


def cc(*names: str, **more: Any) -> list[dict[str, Any]]:
    """A flow of each congestion control."""
    return [{"cc": name, **more} for name in names]


def classes(*names: str) -> list[dict[str, Any]]:
    """Flows in bulk, best effort, video and voice."""
    dscps = ("CS1", "BE", "AF41", "EF")
    return [{"cc": name, "dscp": dscps[n % 4]} for n, name in enumerate(names)]


def hosts(*, far: bool) -> list[dict[str, Any]]:
    """One flow of one host, eight of another."""
    key = "far_host" if far else "host"
    return [{"cc": "cubic", key: int(n > 0)} for n in range(9)]


def cake(**options: Any) -> dict[str, Any]:
    """Keys of a path with CAKE."""
    return {"qdisc": "cake", "qdisc_options": {"tins": "besteffort", **options}}


def asymmetric(up: str, down: str, **options: Any) -> dict[str, Any]:
    """CAKE in both directions; the slow one carries the ACKs of the fast one."""
    return {"rate": up, "reverse_rate": down, "reverse_qdisc": "cake", **cake(**options)}


MIXED = ("cubic", "reno", "bbr1", "bbr3")
PATHS = (
    Path("cake, 2 cubic", cake(), cc("cubic", "cubic")),
    Path("cake, 4 mixed", cake(), cc(*MIXED)),
    Path("cake, 8 mixed", {**cake(), "rate": "20mbit"}, cc(*MIXED, *MIXED)),
    Path("cake, 2 cubic, ecn", {**cake(), "ecn": True}, cc("cubic", "cubic")),
    Path("cake, 3 mixed, ingress", cake(ingress=True), cc("cubic", "reno", "bbr3")),
    Path("cake below htb, 4 mixed", cake(bandwidth="unlimited"), cc(*MIXED)),
    Path("cake atm 32, 2 cubic", cake(framing="atm", overhead=32), cc("cubic", "cubic")),
    Path("cake ptm 30, 4 mixed", cake(framing="ptm", overhead=30), cc(*MIXED)),
    Path(
        "cake ack-filter 10:0.5",
        asymmetric("10mbit", "500kbit", ack_filter="filter"),
        [*cc("cubic", "reno"), {"cc": "cubic", "direction": "down"}],
        "reverse",
        vm_seeds=4,
    ),
    Path(
        "cake aggressive 20:1 atm",
        asymmetric("20mbit", "1mbit", ack_filter="aggressive", framing="atm", overhead=32),
        [*cc("cubic", "cubic"), {"cc": "cubic", "direction": "down"}],
        "reverse",
    ),
    Path("cake diffserv3", cake(tins="diffserv3"), classes(*4 * ("cubic",))),
    Path("cake diffserv4", cake(tins="diffserv4"), classes(*4 * ("cubic",))),
    Path("cake diffserv4, 8 mixed", cake(tins="diffserv4"), classes(*MIXED, *MIXED[::-1])),
    Path("cake diffserv8", cake(tins="diffserv8"), classes(*4 * ("reno",))),
    Path("cake precedence", cake(tins="precedence"), classes(*4 * ("cubic",))),
    Path("cake dual-srchost 1 + 8", cake(isolation="dual-srchost"), hosts(far=False)),
    Path("cake triple-isolate 1 + 8", cake(isolation="triple-isolate"), hosts(far=True)),
    Path("pie, 4 mixed", {"qdisc": "pie", "rtt": "20ms"}, cc(*MIXED), seconds=20, vm_seeds=4),
    Path(
        "pie, 4 reno, ecn",
        {"qdisc": "pie", "ecn": True, "rtt": "20ms"},
        cc(*4 * ("reno",)),
        seconds=20,
        vm_seeds=4,
    ),
    Path("fq_pie, 4 mixed", {"qdisc": "fq_pie"}, cc(*MIXED)),
    Path("sfq, 4 mixed", {"qdisc": "sfq"}, cc(*MIXED), vm_seeds=4),
    Path("fq_codel, 8 mixed", {"qdisc": "fq_codel", "rate": "20mbit"}, cc(*MIXED, *MIXED)),
    Path(
        "prio, EF 3 Mbit/s + 1 cubic",
        {"qdisc": "prio"},
        [{"cc": "cubic", "dscp": "EF", "app_rate": "3mbit"}, *cc("cubic")],
    ),
    # Two CUBIC flows of one queue would share by who left slow start when, not by the discipline.
    Path(
        "tbf, 4 reno", {"qdisc": "tbf", "rtt": "10ms"}, cc(*4 * ("reno",)), seconds=20, vm_seeds=12
    ),
)


@dataclass(frozen=True)
class Figures:
    """The compared figures of a run."""

    shares: np.ndarray[Any, np.dtype[np.float64]]
    delay_ms: float
    drops: float
    marks: float


def figures(path: Path, made: Sequence[Recording]) -> Figures:
    """Means over runs."""
    shares, delays, drops, marks = [], [], [], []
    for recording in made:
        view = View(recording)
        delivered = delivered_bytes(view)
        shares.append(delivered / delivered.sum())
        samples = view.samples("flow_samples")
        base = {
            int(flow): us
            for flow, us in zip(view.flows["flow_id"], view.flows["base_rtt_us"], strict=True)
        }
        above = [
            (rtt - base[int(flow)]) / 1000
            for flow, rtt in zip(samples["flow_id"], samples["srtt_us"], strict=True)
            if rtt > 0
        ]
        delays.append(float(np.median(above)))
        queue = view.queue(path.queue)
        drops.append(float(queue["dropped_packets"][-1]))
        marks.append(float(queue["marked_packets"][-1]))
    mean = [float(np.mean(values)) for values in (delays, drops, marks)]
    return Figures(np.mean(shares, axis=0), *mean)


def misses(sim: Figures, vm: Figures) -> Iterator[str]:
    """Names of the missed targets."""
    if np.abs(sim.shares - vm.shares).max() > SHARE:
        yield "share"
    if abs(sim.delay_ms - vm.delay_ms) > max(DELAY_MS, DELAY * vm.delay_ms):
        yield "delay"
    for name, ours, theirs in (("drops", sim.drops, vm.drops), ("marks", sim.marks, vm.marks)):
        if abs(ours - theirs) > max(COUNT * theirs, FEW / 2 if theirs < FEW else 0):
            yield name


def main() -> None:
    """Runs and prints."""
    parser = arguments(__doc__, 8, 1)
    parser.add_argument("--engine", choices=("vm", "live"), default="vm")
    options = parser.parse_args()
    print(
        f"{'path':30} {'largest share difference':>24} {'delay ms':>13} {'drops':>15} {'marks':>13}"
    )
    failed = 0
    for path in (path for path in PATHS if options.only in path.name):
        seeds = max(options.seeds, 2 * path.vm_seeds), max(options.vm_seeds, path.vm_seeds)
        made = pair(path.document, seeds, options.jobs, options.engine)
        sim, vm = (figures(path, one) for one in made)
        worst = int(np.abs(sim.shares - vm.shares).argmax())
        missed = list(misses(sim, vm))
        failed += bool(missed)
        share = f"{sim.shares[worst]:.3f} / {vm.shares[worst]:.3f}"
        difference = abs(sim.shares[worst] - vm.shares[worst])
        print(
            f"{path.name:30} {share:>17} {difference:6.3f} {sim.delay_ms:6.2f} {vm.delay_ms:6.2f} "
            f"{sim.drops:7.1f} {vm.drops:7.1f} {sim.marks:6.1f} {vm.marks:6.1f} "
            f"{' '.join(missed) or 'ok'}",
            flush=True,
        )
    print(
        f"sim / {options.engine}; targets: shares within {SHARE}, delay within {DELAY:.0%} or "
        f"{DELAY_MS:g} ms, drops and marks within {COUNT:.0%}; missed on {failed} paths"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
