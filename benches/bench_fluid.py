"""Speed, memory and convergence of the fluid models.

Prints CPU seconds of the published model's 9 s, 10 flows, step 0.01 ms (target: at most 1; the
published program: about 80), its peak memory over 1000 s (target: below 200 MB), and how much
halving the step changes shares (target: below 0.5 %), for it and for the extended model.
Usage: `.venv/bin/python benches/bench_fluid.py [--quick]`; --quick leaves out the 1000 s.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import replace

from processes import peak_kib

from fullpipe.models import Contest, FluidRun, contest_run, published_run, run_fluid
from fullpipe.models.extended import run_extended

PUBLISHED_PROGRAM_S = 80
MIXES = (
    ("bbr1",), ("bbr2",), ("cubic", "bbr1"), ("cubic", "bbr2"), ("reno", "bbr2"), ("reno", "cubic"),
)  # fmt: skip
#: Enough that the mean over seeds is known to 0.001 to 0.004.
EXTENDED_SEEDS = range(1, 25)


def ten_flows(ccs: Sequence[str], aqm: str = "drop_tail", duration_s: float = 9.0) -> FluidRun:
    """The published validation's path: 100 Mbit/s, base RTT 30 to 40 ms, 4 link BDP."""
    return published_run(10, 100, 4.0, list(ccs), 10, (5, 10), aqm, duration_s=duration_s)


def cpu_seconds(run: FluidRun) -> float:
    """CPU time of one run on one thread."""
    begin = time.process_time()
    run_fluid([run], threads=1)
    return time.process_time() - begin


def largest_change(runs: Sequence[FluidRun]) -> tuple[float, str]:
    """Largest change of any congestion control's delivered share when the step is halved, in
    parts of capacity, and where."""
    halved = [replace(run, step_ms=run.step_ms / 2) for run in runs]
    changes = [
        (
            abs(whole.share_of(cc) - half.share_of(cc)),
            f"{cc} in {'+'.join(sorted(set(whole.run.ccs)))}, {whole.run.aqm}",
        )
        for whole, half in zip(run_fluid(runs), run_fluid(halved), strict=True)
        for cc in sorted(set(whole.run.ccs))
    ]
    return max(changes)


def extended_change(contest: Contest) -> float:
    """The same of the extended model, for the mean over seeds."""
    run = replace(contest_run(contest), duration_s=600.0, window_start_s=200.0)
    whole, half = run_extended(
        [run, replace(run, steps_per_rtt=2 * run.steps_per_rtt)], EXTENDED_SEEDS
    )
    return abs(whole.share_of(contest.cc) - half.share_of(contest.cc))


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the 1000 s")
    quick = parser.parse_args().quick
    times = {"+".join(ccs): cpu_seconds(ten_flows(ccs)) for ccs in MIXES}
    for name, seconds in times.items():
        print(f"published model, 9 s, 10 flows, {name}: {seconds:.2f} s of CPU")
    slowest = max(times.values())
    print(
        f"slowest: {slowest:.2f} s, published program / this: {PUBLISHED_PROGRAM_S / slowest:.0f}"
    )
    begin = time.process_time()
    run_extended([contest_run(Contest("bbr3", 9, "cubic", 10e6, 0.04, 8.0))], seeds=[1], threads=1)
    print(f"extended model, 1000 s, 10 flows: {time.process_time() - begin:.2f} s of CPU")
    if not quick:
        call = "cpu_seconds(bench_fluid.ten_flows(('cubic', 'bbr2'), 'red', 1000))"
        peak = peak_kib("bench_fluid", call)
        print(f"memory, 1000 s, 10 flows: {peak / 1024:.0f} MB at most")
    print(f"memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")
    runs = [ten_flows(ccs, aqm) for ccs in MIXES for aqm in ("drop_tail", "red")]
    change, where = largest_change(runs)
    print(f"halving the step, published model: {100 * change:.3f} % of capacity ({where})")
    for flows, buffer_bdp in ((1, 1.0), (1, 8.0), (4, 2.0)):
        change = extended_change(Contest("bbr3", flows, "cubic", 10e6, 0.04, buffer_bdp))
        print(f"halving the step, extended, N={flows} X={buffer_bdp:g}: {100 * change:.3f} %")


if __name__ == "__main__":
    main()
