"""The Wi-Fi link against reference runs of ns-3, row by row, and its speed.

FILE has the columns of tests/data/wifi_reference.csv, which is the default. Rows of one case and
seed are one run; here it is repeated with several seeds and their mean is compared. Measured
uplinks (--uplinks, by default tests/data/wifi_uplink_observed.csv) are compared with the one set of
assumptions of wifi_uplink.toml. Exit status 1 where a target is missed. Usage: `bench_wifi.py
[FILE.csv] [--uplinks FILE.csv] [--only TEXT] [--seeds N] [--all]`.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.wifi import CATEGORIES, WifiOptions, resolve_wifi

NS_PER_S = 10**9
#: BBRv1 with as little allowance for aggregated ACKs as ns-3's TcpBbr has
#: (docs/background/wifi.md).
NS3_BBR = "bbr1[extra_acked_gain=0]"
#: UDP payload of an IP packet of 1500 bytes.
PAYLOAD_BITS = 8 * 1472
MIN_PACKETS_PER_S = 1_000_000
#: Class of rows -> largest deviation of goodput.
TARGETS = {
    "one station, formula": 0.01,
    "one station": 0.01,
    "without aggregation": 0.02,
    "with aggregation": 0.05,
    "classes, 20 s": 0.15,
    "classes, 5 s": None,
    "errors": 0.03,
    "no preamble detection": None,
    "TCP, goodput": 0.08,
    "TCP, ping": 0.25,
    "uplinks, total": 0.20,
    "uplinks, ping": 0.50,
    "fewer streams, total": None,
    "fewer streams, ping": None,
}
#: Of all rows of classes together: 45 runs, whose figures hang together, stay below this by
#: chance with 99 % (chi-squared).
DRAWS_MAX = 1.55
#: Times as many repetitions for rows of classes.
CLASS_REPEATS = 10
#: Streams from which measured uplinks have targets.
MANY_STREAMS = 8
UPLINK = Path(__file__).with_name("wifi_uplink.toml")
DATA = Path(__file__).resolve().parents[1] / "tests/data"


@dataclass(frozen=True)
class Check:
    """One figure and its reference."""

    kind: str
    case: str
    value: float
    expected: float
    unit: str = "Mbit/s"
    #: Standard deviation of one run of ours, where the reference is one run of as many seconds.
    deviation: float | None = None

    @property
    def draws(self) -> float | None:
        """How many of these the reference lies from our mean."""
        return (self.expected - self.value) / self.deviation if self.deviation else None

    @property
    def error(self) -> float:
        """Relative deviation; of a measured uplink's ping the factor between the two, less one."""
        if self.kind.endswith("streams, ping") or self.kind == "uplinks, ping":
            return max(self.value / self.expected, self.expected / self.value) - 1
        return self.value / self.expected - 1 if self.expected else 0.0

    @property
    def missed(self) -> bool:
        """Whether its target is."""
        target = TARGETS[self.kind]
        return target is not None and abs(self.error) > target


def options_of(rows: list[dict[str, str]]) -> WifiOptions:
    """The channel of the rows of one saturated case."""
    row = rows[0]
    case = row["case_id"]
    flags = case.split("-")
    # Rows of "ns-3 default" sizes equal those of 65535 bytes for all categories to the last bit.
    size = int(row["ampdu_max_bytes"]) if row["ampdu_max_bytes"].isdecimal() else 65535
    stations = [
        {"name": f"s{index}", "background": [{"category": category, "direction": row["direction"]}]}
        for index, category in enumerate(categories_of(rows))
    ]
    error = next((float(flag[1:]) for flag in flags if flag[:2] == "E0"), 0.0)
    return WifiOptions.model_validate({
        "standard": row["standard"].removeprefix("802.11"),
        "band": "2.4GHz" if "g24" in flags[1] else "5GHz",
        "width": int(row["width_mhz"]),
        "streams": int(row["nss"]),
        "mcs": int(row["mcs"]),
        "guard_interval": f"{row['gi_ns']}ns",
        "rules": "ns3",
        "block_ack_request": "nobar" not in flags,
        "eifs": "nopd" in flags,
        "txop": {"VI": 0, "VO": 0} if "txop0" in flags else {},
        "ampdu": dict.fromkeys(CATEGORIES, size),
        "error_rate": error,
        "block_ack_retry_limit": None,
        "queue": {"kind": "driver", "packets": 500},
        "station": stations,
    })  # fmt: skip


def categories_of(rows: list[dict[str, str]]) -> list[str]:
    """Access categories of the stations: named in case B, one for all otherwise."""
    row = rows[0]
    if len(rows) == 1:
        return [row["access_category"]] * int(row["n_stations"])
    return [row["access_category"] for row in rows]


def goodputs(
    options: WifiOptions, seconds: float, seeds: Iterable[int]
) -> list[tuple[float, float]]:
    """UDP goodput of each station in bit/s: mean and standard deviation over the seeds."""
    text = json.dumps(resolve_wifi(options))
    begin, end = 2 * NS_PER_S, round((2 + seconds) * NS_PER_S)
    runs = [
        [
            row["delivered_packets"] * PAYLOAD_BITS / seconds
            for row in _native.wifi.saturation(text, seed, begin, end)
        ]
        for seed in seeds
    ]
    return [
        (statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
        for values in zip(*runs, strict=True)
    ]


def formula_bps(row: dict[str, str]) -> float:
    """Goodput of one saturated station by airtime; rules and constants of ns-3 3.44."""
    very_high = row["standard"] == "802.11ac"
    mcs, streams, width = int(row["mcs"]), int(row["nss"]), int(row["width_mhz"])
    short = row["gi_ns"] == "400"
    bits, rate = [
        (1, 1 / 2), (2, 1 / 2), (2, 3 / 4), (4, 1 / 2), (4, 3 / 4), (6, 2 / 3), (6, 3 / 4),
        (6, 5 / 6), (8, 3 / 4), (8, 5 / 6),
    ][mcs if very_high else mcs % 8]  # fmt: skip
    data_bits = round({20: 52, 40: 108, 80: 234}[width] * bits * streams * rate)
    symbol_us = 3.6 if short else 4.0
    extension_us, sifs_us = (6, 10) if "g24" in row["case_id"] else (0, 16)
    encoder_mbps = (600 if short else 540) if very_high else (350 if short else 300)
    encoders = 1 if data_bits / symbol_us <= encoder_mbps else 2
    preamble_us = 36 if streams == 1 else 40

    def duration_us(size: int) -> float:
        symbols = -(-(16 + 8 * size + 6 * encoders) // data_bits)
        return preamble_us + symbol_us * symbols + extension_us

    largest, most = int(row["ampdu_max_bytes"]), 1
    size = 1542 if very_high else 1538
    while most < 64 and largest:
        larger = most * 1544 + 1542
        if larger > largest or duration_us(larger) > 5484:
            break
        most, size = most + 1, larger
    answer_us = (28 if most == 1 else 32) + extension_us
    beacon_us = 1376 if "g24" in row["case_id"] else 236 if very_high else 208
    cycle_us = sifs_us + 3 * 9 + 7.5 * 9 + duration_us(size) + sifs_us + answer_us
    beacons = 1 - (beacon_us + sifs_us + 9) / 102_400
    return most * PAYLOAD_BITS / cycle_us * 1e6 * beacons


def saturated_checks(rows: list[dict[str, str]], seeds: int) -> list[Check]:
    """The rows of one case."""
    row = rows[0]
    case = row["case_id"]
    seconds = 20.0 if case.endswith("-t20") else 5.0
    # The losing class of two has few aggregates, which spread from seed to seed.
    repeats = CLASS_REPEATS * seeds if case.startswith("B-") else seeds
    values = goodputs(options_of(rows), seconds, range(1, repeats + 1))
    if len(rows) > 1:
        kind = "classes, 20 s" if case.endswith("-t20") else "classes, 5 s"
        return [
            Check(
                kind,
                f"{case} {row['access_category']}",
                mean / 1e6,
                float(row["goodput_bps"]) / 1e6,
                deviation=deviation / 1e6,
            )
            for row, (mean, deviation) in zip(rows, values, strict=True)
        ]
    total, expected = sum(mean for mean, _ in values) / 1e6, float(row["goodput_bps"]) / 1e6
    if case.startswith("C-"):
        return [Check("errors", case, total, expected)]
    if case.endswith("-nopd"):
        return [Check("no preamble detection", case, total, expected)]
    if row["n_stations"] != "1":
        kind = "without" if row["ampdu_max_bytes"] == "0" else "with"
        return [Check(f"{kind} aggregation", case, total, expected)]
    checks = [Check("one station", case, total, expected)]
    if row["access_category"] == "BE" and row["ampdu_max_bytes"].isdecimal():
        checks.append(Check("one station, formula", case, total, formula_bps(row) / 1e6))
    return checks


def tcp_checks(rows: list[dict[str, str]], seeds: int) -> list[Check]:
    """A TCP row: 20 ms of wire at 1 Gbit/s behind one station, pings beside the flows."""
    row = rows[0]
    runs = [tcp_run(tcp_scenario(row), seed) for seed in range(1, seeds + 1)]
    totals = [8e-6 * sent / float(row["seconds"]) for sent, _ in runs]
    pings = [ping for _, ping in runs]
    expected_ms, expected = float(row["ping_p50_ms"]), float(row["goodput_bps"]) / 1e6
    case = row["case_id"]
    checks = [Check("TCP, ping", case, statistics.fmean(pings), expected_ms, "ms")]
    if expected:
        checks.append(Check("TCP, goodput", case, statistics.fmean(totals), expected))
    return checks


def tcp_scenario(row: dict[str, str]) -> dict[str, Any]:
    """CUBIC is ours; BBRv1 stands for ns-3's TcpBbr, without the allowance that that lacks."""
    _, _, cc, directions, queue = row["case_id"].split("-", 4)
    up, down = directions.removesuffix("down").split("up")
    queues: dict[str, dict[str, Any]] = {
        "dflt": {"packets": 500, "above": "fq_codel", "above_packets": 10240},
        "fqc-w100": {"packets": 100, "above": "fq_codel", "above_packets": 10240},
        "fifo1000w1000": {"packets": 1000, "above": "fifo", "above_packets": 1000},
        "fifo1000w100": {"packets": 100, "above": "fifo", "above_packets": 1000},
    }
    flows = [
        {"cc": NS3_BBR if cc == "bbr" else cc, "count": int(count), "direction": direction}
        for count, direction in ((up, "up"), (down, "down"))
        if int(count)
    ]
    # A flow of one byte stands for none: a scenario has flows.
    idle = [{"cc": "cubic", "amount": "1B"}]
    return {
        "duration": f"{row['seconds']}s",
        "path": {"rate": "1gbit", "rtt": "40ms", "forward_delay": "20ms", "buffer": "10000pkt"},
        "wifi": {
            "standard": row["standard"].removeprefix("802.11"),
            "width": int(row["width_mhz"]),
            "streams": int(row["nss"]),
            "mcs": int(row["mcs"]),
            "rules": "ns3",
            "block_ack_retry_limit": None,
            "queue": {"kind": "driver", "ecn": False, **queues[queue]},
        },
        "flow": [{"start_step": "25ms", **flow} for flow in flows or idle],
        "probe": [{}],
        "host": {"rmem_max": "16MB", "wmem_max": "16MB", "ack_policy": "every_second"},
    }


def uplink_checks(rows: list[dict[str, str]], seeds: int) -> list[Check]:
    """Measured uplinks of TCP alone beside the simulation with as many streams: payload of all over
    the time that they run, median of the pings over the whole time, as the files have both."""
    checks, known = [], {}
    for row in rows:
        count = int(row["streams_up"])
        if not row["test"].startswith("tcp_"):
            continue
        if count not in known:
            known[count] = uplink(count, seeds)
        total, ping = known[count]
        kind = "uplinks" if count >= MANY_STREAMS else "fewer streams"
        case = f"{row['test']} {row['cc']}, {count} streams"
        measured, measured_ms = float(row["up_bytes_mbps"]), float(row["ping_raw_median"])
        checks.append(Check(f"{kind}, total", case, total, measured))
        checks.append(Check(f"{kind}, ping", case, ping, measured_ms, "ms"))
    return checks


def uplink(count: int, seeds: int) -> tuple[float, float]:
    """Mbit/s of all streams together, median ping in ms."""
    scenario = tomllib.loads(UPLINK.read_text(encoding="utf-8"))
    flow = scenario["flow"][0]
    flow["count"] = count
    seconds = float(flow["stop"].removesuffix("s")) - float(flow["start"].removesuffix("s"))
    runs = [tcp_run(scenario, seed) for seed in range(1, seeds + 1)]
    totals, pings = zip(*runs, strict=True)
    return 8e-6 * statistics.fmean(totals) / seconds, statistics.fmean(pings)


def tcp_run(scenario: dict[str, Any], seed: int) -> tuple[int, float]:
    """Payload in bytes that all flows delivered, median ping in ms."""
    raw = _native.sim.run(json.dumps(resolve(make_scenario(scenario), seed)))
    sent = memoryview(raw["flows"]["bytes_delivered"][1]).cast("Q")
    values, valid = raw["ping_samples"]["rtt_us"][1]
    rtts = zip(memoryview(values).cast("Q"), valid, strict=True)
    return sum(sent), statistics.median(rtt for rtt, is_valid in rtts if is_valid) / 1000


def speed_packets_per_s() -> float:
    """Packets that a channel of 300 Mbit/s delivers in a CPU second."""
    options = WifiOptions.model_validate({
        "standard": "n", "width": 40, "mcs": 15, "guard_interval": "400ns",
        "station": [{"background": [{}]}, {"background": [{"direction": "down"}]}],
    })  # fmt: skip
    text = json.dumps(resolve_wifi(options))
    best = 0.0
    for seed in (1, 2, 3):
        begin = time.process_time()
        rows = _native.wifi.saturation(text, seed, 0, 60 * NS_PER_S)
        packets = sum(row["delivered_packets"] for row in rows)
        best = max(best, packets / (time.process_time() - begin))
    return best


def show(checks: list[Check], every: bool) -> bool:
    """Prints a line for each class of rows and each miss; whether one was missed."""
    for check in checks:
        if every or check.missed:
            print(
                f"{'MISS' if check.missed else '  ok'}  {check.case:<42} {check.value:9.3f} "
                f"{check.expected:9.3f} {check.unit} {check.error:+7.2%}{one_draw(check)}"
            )
    titles = f"{'rows':>5} {'target':>7} {'median':>8} {'worst':>8} {'missed':>7}"
    print(f"\n{'class of rows':<24} {titles}")
    for kind, target in TARGETS.items():
        errors = [abs(check.error) for check in checks if check.kind == kind]
        if errors:
            missed = sum(check.missed for check in checks if check.kind == kind)
            text = "-" if target is None else f"{target:.0%}"
            print(
                f"{kind:<24} {len(errors):>5} {text:>7} {statistics.median(errors):>8.2%} "
                f"{max(errors):>8.2%} {missed:>7}"
            )
    squares = [
        check.draws**2 for check in checks if check.draws is not None and "dflt" not in check.case
    ]
    if squares:
        mean = statistics.fmean(squares)
        print(
            "\nA class's reference is one run: by chance a mean square of 1 standard deviation of "
            f"ours;\n{mean:.2f} over {len(squares)} rows, target at most {DRAWS_MAX}"
        )
    wrong = bool(squares) and statistics.fmean(squares) > DRAWS_MAX
    return wrong or any(check.missed for check in checks)


def one_draw(check: Check) -> str:
    """The position of a single-run reference among our runs."""
    if check.draws is None or check.deviation is None:
        return ""
    return f"  (one run; ours have a deviation of {check.deviation:.2f}: {check.draws:+.1f} of it)"


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DATA / "wifi_reference.csv")
    parser.add_argument("--uplinks", type=Path, default=DATA / "wifi_uplink_observed.csv")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seeds", type=int, default=4, help="repetitions of saturated cases")
    parser.add_argument("--all", action="store_true", help="print every row")
    args = parser.parse_args()
    cases: dict[tuple[str, str], list[dict[str, str]]] = {}
    with args.file.open(newline="") as file:
        for row in csv.DictReader(file):
            if args.only in row["case_id"]:
                cases.setdefault((row["case_id"], row["seed"]), []).append(row)
    checks: list[Check] = []
    for (case, _), rows in cases.items():
        check = tcp_checks if case.startswith("D-") else saturated_checks
        checks += check(rows, args.seeds)
    with args.uplinks.open(newline="") as file:
        checks += uplink_checks(list(csv.DictReader(file)), min(args.seeds, 2))
    failed = show(checks, args.all)
    speed = speed_packets_per_s()
    print(f"\nspeed: {speed / 1e6:.2f} million delivered packets a CPU second, target 1")
    sys.exit(1 if failed or speed < MIN_PACKETS_PER_S else 0)


if __name__ == "__main__":
    main()
