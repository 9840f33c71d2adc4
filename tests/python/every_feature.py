"""Scenarios that have between them every congestion control, every queue discipline, every kind of
chance and of host: for tests that compare what builds record."""

from __future__ import annotations

from typing import Any

from fullpipe.congestion.registry import cc_sets
from fullpipe.scenario.qdiscs.registry import DISCIPLINES


def document(name: str, *ccs: str, **path: Any) -> dict[str, Any]:
    return {
        "name": name, "duration": "6s", "seed": 7,
        "path": {"rate": "20mbit", "rtt": "30ms", "buffer": "2bdp", **path},
        "flow": [{"cc": cc, "start_step": "100ms"} for cc in ccs],
        "probe": [{"kind": "ping"}],
    }  # fmt: skip


def everything() -> list[dict[str, Any]]:
    """Every congestion control, every queue discipline, every kind of chance and of host."""
    names = list(cc_sets())
    alone = [document(f"{name}, loss", name, "cubic", loss="0.3%") for name in names]
    managed = [
        document(f"{qdisc}, ECN {ecn}", "bbr3", "reno", "bbr2", qdisc=qdisc, buffer="100p", ecn=ecn)
        for qdisc in DISCIPLINES
        for ecn in (False, True)
    ]
    for doc in managed:
        doc["flow"][1]["dscp"] = "EF"
    slots = document("slotted jitter", "bbr1", "bbr3", jitter="20ms", jitter_shape="slotted")
    jitter = document("jitter", "bbr3-linux", "cubic", jitter="10ms")
    bursts = document("correlated bursts", "bbr2", loss="1%", loss_correlation="25%")
    bursts["path"]["loss_per"] = "burst"
    hosts = document("hosts", "cubic", "bbr3", "reno", reverse_rate="2mbit", reverse_loss="1%")
    hosts["host"] = {"pacing": "fq", "receive_aggregation": "1ms", "tsq": "4ms", "arp": True}
    hosts["flow"][0] |= {"direction": "down", "receive_window": "64KB", "nodelay": True}
    hosts["flow"][1] |= {"app_rate": "3mbit", "rtt": "80ms"}
    hosts["flow"][2] |= {"amount": "2MB"}
    return [*alone, *managed, slots, jitter, bursts, hosts]
