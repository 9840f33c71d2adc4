"""Small Flent files made from formulas, for tests of the reader."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

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


def write_document(path: Path, document: Any) -> Path:
    """The document as a .flent.gz."""
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path
