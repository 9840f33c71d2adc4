"""Small Flent files for tests: from formulas, and from numbers measured by others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from helpers import DATA, measured

T0 = "2026-03-01T12:00:00.000000Z"
T0_UNIX = 1772366400.0
LENGTH_S, DELAY_S, STEP_S = 10, 5, 0.2


def flent_document(
    rates_mbps: tuple[float, ...] = (8.0, 4.0),
    cc: str = "bbr",
    gains: tuple[float, float] = (1.25, 2.25),
    title: str = "BBR-v3",
) -> dict[str, Any]:
    """A tcp_nup test: flow i at a constant rate for 10 s, sampled twice a second; pings of 20 ms
    with request 7 lost; a qdisc that drops one packet a second."""
    x = [round(i * STEP_S, 6) for i in range(int((LENGTH_S + 2 * DELAY_S) / STEP_S) + 1)]
    raw: dict[str, Any] = {}
    results: dict[str, Any] = {}
    series: dict[str, Any] = {}
    inside = [DELAY_S <= t <= DELAY_S + LENGTH_S for t in x]
    for number, rate in enumerate(rates_mbps, 1):
        name = f"TCP upload::{number}"
        demo = [{"t": T0_UNIX + DELAY_S + 0.5 * k, "dur": 0.5, "val": rate} for k in range(1, 21)]
        stats = [
            {
                "t": T0_UNIX + DELAY_S + 0.25 + 0.5 * k,
                "tcp_cwnd": 20.0 + number,
                "tcp_rtt": 30.5,
                "tcp_rtt_var": 1.0,
                "tcp_pacing_rate": 2 * rate,
                "tcp_delivery_rate": rate,
                "tcp_bbr_bw": rate,
                "tcp_bbr_mrtt": 20.0,
                "tcp_bbr_pacing_gain": gains[0],
                "tcp_bbr_cwnd_gain": gains[1],
            }
            for k in range(20)
        ]
        raw[name] = sorted(demo + stats, key=lambda entry: entry["t"])
        results[name] = [rate if there else None for there in inside]
        series[name] = {
            "MEAN_VALUE": rate,
            "ELAPSED_TIME": 10.0,
            "UNITS": "Mbits/s",
            "CONG_CONTROL": cc,
            "TCP_MSS": 1448,
            "TCP_RETRANSMIT": "3",
        }
    total = sum(rates_mbps)
    results["TCP upload sum"] = [total if there else None for there in inside]
    raw["TCP upload sum"] = []
    series["TCP upload sum"] = {"MEAN_VALUE": total, "UNITS": "Mbits/s", "COMPUTED_LATE": False}
    raw["Ping (ms) ICMP"] = [
        {"t": T0_UNIX + 0.02 + STEP_S * k, "seq": float(k), "val": 20.0}
        for k in range(100)
        if k != 7
    ]
    results["Ping (ms) ICMP"] = [20.0] * len(x)
    series["Ping (ms) ICMP"] = {"UNITS": "ms"}
    raw["qdisc_stats_localhost"] = [
        {
            "t": T0_UNIX + k,
            "backlog_bytes": 1514.0 * k,
            "backlog_pkts": float(k),
            "sent_bytes": 1e6 + 1e5 * k,
            "sent_pkts": 1000.0 + 70 * k,
            "dropped": 1.0,
            "ecn_mark": 0.0,
        }
        for k in range(20)
    ]
    metadata = {
        "NAME": "tcp_nup",
        "TITLE": title,
        "TIME": T0,
        "T0": T0,
        "LENGTH": LENGTH_S,
        "TOTAL_LENGTH": LENGTH_S + 2 * DELAY_S,
        "STEP_SIZE": STEP_S,
        "HOST": "server",
        "LOCAL_HOST": "client",
        "FLENT_VERSION": "2.0.1",
        "KERNEL_RELEASE": "6.13.7+v3",
        "TEST_PARAMETERS": {"upload_streams": str(len(rates_mbps))},
        "EGRESS_INFO": {"qdiscs": [{"name": "fq"}], "iface": "eth0", "driver": "e1000"},
        "FAILED_RUNNERS": 0,
        "SERIES_META": series,
    }
    return {
        "version": 4,
        "metadata": metadata,
        "x_values": x,
        "results": results,
        "raw_values": raw,
    }


#: Runs of tests/data/flent_flows.csv.
MEASURED = sorted({row["run"] for row in measured("flent_flows.csv")})


def measured_document(run: str) -> dict[str, Any]:
    """A test with the flows of a measured run: netperf's mean and duration of each, what its socket
    said of the congestion control, and the kept series as Flent interpolated them. Interim results
    are those of a constant rate; each interpolated ping is one request, rounded to 10 us."""
    document = flent_document(())
    metadata, raw, results = (document[key] for key in ("metadata", "raw_values", "results"))
    for part in (metadata["SERIES_META"], raw, results):
        part.clear()
    length_s, delay_s = 60, 5
    metadata |= {"LENGTH": length_s, "TOTAL_LENGTH": length_s + 2 * delay_s}
    grid = json.loads((DATA / "flent_grid.json").read_text(encoding="utf-8")).get(run, {})
    document["x_values"] = x = [round(i * STEP_S, 6) for i in range(356)]
    for row in measured("flent_flows.csv"):
        if row["run"] != run:
            continue
        metadata |= {"NAME": row["test"], "TITLE": row["title"]}
        name, mean, elapsed_s = row["series"], float(row["mean_mbps"]), float(row["elapsed_s"])
        begin = T0_UNIX + delay_s
        gains = [pair.split(":") for pair in row["gains"].split()]
        raw[name] = [
            {"t": begin + (k + 1) * elapsed_s / 100, "dur": elapsed_s / 100, "val": mean}
            for k in range(100)
        ] + [
            {
                "t": begin + k,
                "tcp_bbr_pacing_gain": float(pacing),
                "tcp_bbr_cwnd_gain": float(cwnd),
            }
            for k, (pacing, cwnd) in enumerate(gains, 1)
        ]
        raw[name].sort(key=lambda entry: entry["t"])
        results[name] = [mean if delay_s <= t <= delay_s + elapsed_s else None for t in x]
        metadata["SERIES_META"][name] = {
            "MEAN_VALUE": mean,
            "ELAPSED_TIME": elapsed_s,
            "UNITS": "Mbits/s",
            "CONG_CONTROL": row["cong_control"],
            "TCP_RETRANSMIT": int(row["retransmits"]),
        }
    for name, values in grid.items():
        results[name] = values + [None] * (len(x) - len(values))
    if "TCP upload sum" in grid:
        means = [series["MEAN_VALUE"] for series in metadata["SERIES_META"].values()]
        metadata["SERIES_META"]["TCP upload sum"] = {"MEAN_VALUE": sum(means), "UNITS": "Mbits/s"}
        raw["TCP upload sum"] = []
    if pings := grid.get("Ping (ms) ICMP"):
        metadata["SERIES_META"]["Ping (ms) ICMP"] = {"UNITS": "ms"}
        raw["Ping (ms) ICMP"] = [
            {"t": T0_UNIX + STEP_S * k, "seq": float(k), "val": round(value, 2)}
            for k, value in enumerate(pings)
        ]
    return document


def write_document(path: Path, document: Any) -> Path:
    """The document as a .flent.gz."""
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path
