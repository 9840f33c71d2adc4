"""The slow starts of CUBIC on 72 paths, drawn by a fixed seed: where each ends, what it loses, how
long it takes to fill the path and to deliver 100 KB, 1 MB and 10 MB.

Prints Markdown: means over paths with Student's 95 % intervals, ratios as geometric means of pairs
with the start that Linux has. Every path is run in the simulator once for each start and size.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from fullpipe.engines.base import engine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

SEED = 33
PATHS_A_CLASS = 12
CLASSES = (
    "wired", "shallow buffer", "Wi-Fi jitter", "slow ACK path", "satellite", "application-limited",
)  # fmt: skip
#: Shown name and constants; {bdp} in packets and {rtt} in us are those of the path.
STARTS = {
    "linux": "start=linux",
    "hystart++": "start=hystart++",
    "search": "start=search",
    "careful-resume": "start=careful-resume,saved_cwnd={bdp},saved_rtt_us={rtt}",
    "careful-resume, saved at 4 times the rate":
        "start=careful-resume,saved_cwnd={stale},saved_rtt_us={rtt}",
    "rapid": "start=rapid",
}  # fmt: skip
SIZES = ("100KB", "1MB", "10MB")
PACKET_BITS = 8 * 1514
#: "Full use" is this part of the link's rate, over so many RTTs.
FULL, FULL_RTTS = 0.9, 4


def paths(count: int) -> list[tuple[str, dict[str, Any], float, float]]:
    """(class, keys of the scenario, rate in bit/s, base RTT in s) of each path."""
    rng = np.random.default_rng(SEED)
    found = []
    for kind in CLASSES:
        for _ in range(count):
            rate = 10 ** rng.uniform(np.log10(5e6), np.log10(200e6))
            rtt = 10 ** rng.uniform(np.log10(0.010), np.log10(0.150))
            buffer = rng.uniform(1, 4)
            flow: dict[str, Any] = {}
            more: dict[str, Any] = {}
            if kind == "shallow buffer":
                buffer = rng.uniform(0.1, 0.5)
            elif kind == "Wi-Fi jitter":
                more = {"jitter": f"{rng.uniform(2, 15):.1f}ms", "jitter_shape": "slotted"}
            elif kind == "slow ACK path":
                # An ACK of 66 bytes for two packets: the reverse direction carries 40 to 120 % of
                # them.
                share = rng.uniform(0.4, 1.2) * 66 / (2 * 1514)
                more = {"reverse_rate": f"{rate * share:.0f}bit"}
            elif kind == "satellite":
                rtt = rng.uniform(0.5, 0.7)
            elif kind == "application-limited":
                on = rng.uniform(0.1, 0.5)
                flow = {"pattern": {"on": f"{on:.3f}s", "off": f"{on:.3f}s"}}
            path = {
                "rate": f"{rate:.0f}bit", "rtt": f"{rtt * 1e6:.0f}us", "buffer": f"{buffer:.2f}bdp",
                **more,
            }  # fmt: skip
            found.append((kind, {"path": path, "flow": flow}, rate, rtt))
    return found


def _run(keys: dict[str, Any], cc: str, duration_s: float, amount: str | None) -> Any:
    flow = {"cc": cc, **keys["flow"], **({"amount": amount} if amount else {})}
    document = {
        "duration": f"{duration_s:.3f}s",
        "sample_interval": "10ms",
        "host": {"pacing": "fq"},
        "path": keys["path"],
        "flow": [flow],
    }
    result = engine("sim").run(resolve(make_scenario(document)), lambda _done: True, {})
    return result.tables


def full_use_s(tables: Any, rate: float, rtt: float) -> float:
    """When the link was first used fully for some RTTs; nan: never."""
    samples = tables["flow_samples"]
    t_s = samples["t_us"].to_numpy() / 1e6
    volume = samples["bytes_acked"].to_numpy() * 8 * 1514 / 1448
    window = FULL_RTTS * rtt
    earlier = np.interp(t_s - window, t_s, volume)
    full = (t_s > window) & (volume - earlier >= FULL * rate * window)
    return float(t_s[full][0]) if full.any() else float("nan")


def measure(job: tuple[dict[str, Any], float, float, str]) -> list[float]:
    """Window at the end over the BDP, lost in %, use of the first seconds in %, time to full use
    in RTTs, completion times in s."""
    keys, rate, rtt, start = job
    bdp = rate * rtt / PACKET_BITS
    cc = "cubic[" + STARTS[start].format(bdp=round(bdp), stale=round(4 * bdp), rtt=round(rtt * 1e6))
    cc += "]"
    duration_s = 3 + 30 * rtt
    tables = _run(keys, cc, duration_s, None)
    ends = [
        row["start_exit_cwnd_packets"]
        for row in tables["cc_samples"].select(["start_exit_cwnd_packets"]).to_pylist()
    ]
    flow = tables["flows"].to_pylist()[0]
    found = [
        (ends[-1] if ends and ends[-1] else float("nan")) / bdp,
        100 * flow["packets_lost"] / max(flow["packets_sent"], 1),
        100 * flow["bytes_acked"] * 8 * 1514 / 1448 / (rate * duration_s),
        full_use_s(tables, rate, rtt) / rtt,
    ]
    for size, megabytes in zip(SIZES, (0.1, 1, 10), strict=True):
        if keys["flow"]:  # one that pauses has no amount
            found.append(float("nan"))
            continue
        longest = 10 + 60 * rtt + 6 * 8e6 * megabytes / rate
        done = _run(keys, cc, longest, size)["flows"].to_pylist()[0]["completion_us"]
        found.append(done / 1e6 if done else float("nan"))
    return found


def interval(values: npt.NDArray[np.float64], digits: int = 2) -> str:
    """Mean with Student's 95 % interval, without what was not measured."""
    values = values[np.isfinite(values)]
    if not len(values):
        return "-"
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {half:.{digits}f}"


def ratio(values: npt.NDArray[np.float64], base: npt.NDArray[np.float64]) -> str:
    """Geometric mean of pairs with its 95 % interval."""
    logs = np.log(values / base)
    logs = logs[np.isfinite(logs)]
    if not len(logs):
        return "-"
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    low, middle, high = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _head(names: Sequence[str]) -> None:
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=PATHS_A_CLASS, help="of each class")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    drawn = paths(arguments.paths)
    jobs = [(keys, rate, rtt, start) for start in STARTS for _, keys, rate, rtt in drawn]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        table = np.array(list(pool.map(measure, jobs))).reshape(len(STARTS), len(drawn), -1)
    usual = table[0]
    print(f"{len(drawn)} paths, seed {SEED}\n")
    heads = (
        "start", "window at the end, BDP", "lost, %", "use of the first seconds, %",
        "RTTs to full use", "never full", *SIZES,
    )  # fmt: skip
    _head(heads)
    for start, mine in zip(STARTS, table, strict=True):
        cells = [start, interval(mine[:, 0]), interval(mine[:, 1]), interval(mine[:, 2], 1)]
        cells += [interval(mine[:, 3], 1), str(int(np.isnan(mine[:, 3]).sum()))]
        cells += [ratio(mine[:, 4 + size], usual[:, 4 + size]) for size in range(len(SIZES))]
        print("| " + " | ".join(cells) + " |")
    kinds = np.array([kind for kind, *_ in drawn])
    for title, column, of_linux in (
        ("Window at the end, BDP", 0, False),
        ("Lost, %", 1, False),
        ("1 MB, times Linux's start", 5, True),
        ("10 MB, times Linux's start", 6, True),
    ):
        print(f"\n{title}:\n")
        _head(("start", *CLASSES))
        for start, mine in zip(STARTS, table, strict=True):
            cells = [start]
            for kind in CLASSES:
                here = kinds == kind
                values = mine[here, column]
                cells.append(ratio(values, usual[here, column]) if of_linux else interval(values))
            print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
