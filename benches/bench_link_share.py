"""Share of N BBR flows against one loss-based flow, simulated and as measured on real kernels.

Prints the mean squared error of each panel of `link_share_observed.csv` (sarpkaya2025's artifact;
how it was measured: tests/data/README.md) beside the theory's. The hosts have the TCP of the
measured kernels, which decides contests in small buffers; `--tcp` gives them another.
Usage: `.venv/bin/python benches/bench_link_share.py [FILE.csv] [--seeds N] [--jobs 2] [--points]
[--tcp RELEASE]`.
"""

from __future__ import annotations

import argparse
import csv
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

DEFAULT = Path(__file__).resolve().parents[1] / "tests/data/link_share_observed.csv"
#: Kernels of the experiment: mainline's BBRv1, the v2 kernel, Google's v3 kernel.
CC = {"v1": "bbr1", "v2": "bbr2", "v3": "bbr3-linux"}
#: Whose TCP they had (`host.tcp`): 5.13.12 twice, 6.4.
OWN_TCP = {"v1": "5.13", "v2": "5.13", "v3": "6.4"}
#: Packets in a burst, and until 6.10 in a buffer of the write queue, where the device sets no limit
#: of its own: 65215 bytes (tcp_xmit_size_goal()). That it is odd decides contests of a few flows.
GSO_SEGMENTS = 45
DURATION_S, LAST_S = 1000, 400


def simulated_share(row: dict[str, str], seed: int, tcp: str | None) -> float:
    """Mean goodput of all BBR flows over the last 400 of 1000 s, over the nominal capacity."""
    rate_mbps, rtt_ms = float(row["capacity_mbps"]), float(row["rtt_ms"])
    # tc's kb is 1024 bytes, so the testbed's limit is 2.4 % above X x capacity x RTT.
    limit = round(float(row["buffer_bdp"]) * rate_mbps * rtt_ms * 125 * 1.024)
    count = int(row["n_bbr"])
    document = {
        "name": "link share",
        "duration": f"{DURATION_S}s",
        "seed": seed,
        "sample_interval": f"{LAST_S // 2}s",
        # Else all seeds repeat one contest until the first loss, and longer.
        "start_spread": "5ms",
        "path": {"rate": f"{rate_mbps:g}mbit", "rtt": f"{rtt_ms:g}ms", "buffer": f"{limit}B"},
        "flow": [{"cc": CC[row["bbr_version"]], "count": count}, {"cc": row["loss_cca"]}],
        "host": {"tcp": tcp or OWN_TCP[row["bbr_version"]], "gso_max_segments": GSO_SEGMENTS},
    }
    tables = _native.sim.run(json.dumps(resolve(make_scenario(document))))
    columns = tables["flow_samples"]
    times, flows, volumes = (
        np.frombuffer(columns[name][1], dtype="<u8")
        for name in ("t_us", "flow_id", "bytes_delivered")
    )
    begin = (DURATION_S - LAST_S) * 1_000_000
    total = sum(
        int(volumes[(flows == flow) & (times == DURATION_S * 1_000_000)][0])
        - int(volumes[(flows == flow) & (times == begin)][0])
        for flow in range(count)
    )
    return total * 8 / LAST_S / (rate_mbps * 1e6)


def main() -> None:
    """Runs all points of the file and prints the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each point")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    parser.add_argument("--points", action="store_true", help="print every point")
    parser.add_argument(
        "--tcp", help="host.tcp of all points, such as 7.3; that of the measured kernels"
    )
    options = parser.parse_args()
    with options.file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    seeds = range(1, options.seeds + 1)
    with ProcessPoolExecutor(options.jobs) as pool:
        work = [(row, seed, options.tcp) for row in rows for seed in seeds]
        made = list(pool.map(simulated_share, *zip(*work, strict=True)))
    shares = np.array(made).reshape(len(rows), options.seeds)
    means = shares.mean(axis=1)
    for figure in dict.fromkeys(row["figure"] for row in rows):
        index = [i for i, row in enumerate(rows) if row["figure"] == figure]
        observed = np.array([float(rows[i]["link_share"]) for i in index])
        theory = np.array([float(rows[i]["steady_state_share"]) for i in index])
        error = float(((means[index] - observed) ** 2).mean())
        against = float(((theory - observed) ** 2).mean())
        alone = ((shares[index] - observed[:, None]) ** 2).mean(axis=0)
        version = rows[index[0]]["bbr_version"]
        print(
            f"panel {figure} ({CC[version]} against {rows[index[0]]['loss_cca']}, TCP of "
            f"{options.tcp or OWN_TCP[version]}, {len(index)} points, {options.seeds} seed(s)): "
            f"MSE {error:.5f} (each seed alone: {', '.join(f'{a:.4f}' for a in alone)}), "
            f"in the mean {(means[index] - observed).mean():+.4f}; "
            f"BBRv1's steady-state model {against:.5f}"
        )
        if options.points:
            for i in index:
                row = rows[i]
                print(
                    f"  N={row['n_bbr']:>2} X={row['buffer_bdp']:>2} observed "
                    f"{float(row['link_share']):.3f} simulated {means[i]:.3f}"
                )


if __name__ == "__main__":
    main()
