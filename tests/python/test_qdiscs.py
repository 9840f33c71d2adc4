"""Queue disciplines from the scenario to the simulator: what tc would take for a key that is left
out, and what each promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.qdiscs.registry import DISCIPLINES
from helpers import column, simulate


def document(qdisc: str, *flows: dict[str, Any], **path: Any) -> dict[str, Any]:
    return {
        "duration": "5s",
        "warmup": "2s",
        "path": {"rate": "10mbit", "rtt": "20ms", "qdisc": qdisc, **path},
        "flow": list(flows) or [{"cc": "cubic", "count": 2}],
    }


def goodput_bps(raw: dict[str, Any], from_s: float = 2.0, to_s: float = 5.0) -> float:
    t_us, delivered = (column(raw, "flow_samples", key) for key in ("t_us", "bytes_delivered"))
    total = [delivered[t_us == at_s * 1e6].sum() for at_s in (from_s, to_s)]
    return float(total[1] - total[0]) * 8 / (to_s - from_s)


def resolved(qdisc: str, **path: Any) -> dict[str, Any]:
    plan = resolve(make_scenario(document(qdisc, **path)))
    found: dict[str, Any] = plan["path"]["qdisc"]
    return found


def test_what_is_left_out_is_what_linux_and_tc_take() -> None:
    cake = resolved("cake")
    assert cake["limit_bytes"] is None
    assert cake["aqm"]["target_ns"] * 20 == cake["aqm"]["rtt_ns"] == 100_000_000
    assert (cake["aqm"]["tins"], cake["aqm"]["isolation"]) == ("diffserv3", "triple-isolate")
    # tc-pie(8): alpha 2 and beta 20, in sixteenths of a Hz; 1000 packets.
    pie = resolved("pie")
    assert (pie["aqm"]["alpha"], pie["aqm"]["beta"], pie["limit_packets"]) == (2, 20, 1000)
    # sch_dualpi2.c: 41 and 819 in 256ths of a Hz.
    dualpi2 = resolved("dualpi2")["aqm"]
    assert (dualpi2["alpha"], dualpi2["beta"], dualpi2["classic_percent"]) == (41, 819, 10)
    assert resolved("sfq")["limit_packets"] == 127
    assert resolved("prio")["aqm"]["filters"] == [(1, 2), (8, 2), (46, 0), (48, 0), (56, 0)]


@pytest.mark.parametrize(
    ("qdisc", "option", "written", "key", "value"),
    [
        ("fq", "ce_threshold", "2ms", "ce_threshold_ns", 2_000_000),
        ("codel", "ce_threshold", "2ms", "ce_threshold_ns", 2_000_000),
        ("fq_codel", "ce_threshold", "2ms", "ce_threshold_ns", 2_000_000),
        ("dualpi2", "min_qlen_step", 4, "min_qlen_step_packets", 4),
        ("red", "adaptive", True, "adaptive", True),
    ],
)
def test_an_option_is_in_a_plan_only_where_it_is_set(
    qdisc: str, option: str, written: Any, key: str, value: Any
) -> None:
    # Recordings from before the option are found by the plan they had.
    assert key not in resolved(qdisc)["aqm"]
    assert resolved(qdisc, qdisc_options={option: written})["aqm"][key] == value


@pytest.mark.parametrize("qdisc", ["codel", "fq_codel"])
def test_a_ce_threshold_keeps_the_queue_shorter_without_a_drop(qdisc: str) -> None:
    # DCTCP over a step of 1 ms (RFC 8257): marks come before CoDel's first interval is over.
    found = simulate(
        **document(
            qdisc, {"cc": "dctcp"}, rate="100mbit", rtt="10ms", ecn=True,
            qdisc_options={"ce_threshold": "1ms"},
        )
    )  # fmt: skip
    queue = {
        name: column(found, "queue_samples", name)
        for name in ("queue_bytes", "dropped_packets", "marked_packets")
    }
    assert queue["marked_packets"].max() > 100
    assert queue["dropped_packets"].max() == 0
    # CoDel alone lets 5 ms stand, 62,500 bytes.
    assert 0 < float(np.mean(queue["queue_bytes"][-40:])) < 40_000


@pytest.mark.parametrize("qdisc", DISCIPLINES)
def test_every_discipline_delivers_and_keeps_to_the_links_rate(qdisc: str) -> None:
    raw = simulate(**document(qdisc))
    assert 0.8 * 10e6 * 1448 / 1514 < goodput_bps(raw) <= 1.01 * 10e6 * 1448 / 1514


@pytest.mark.parametrize("qdisc", DISCIPLINES)
def test_options_of_every_other_discipline_are_refused_by_name(qdisc: str) -> None:
    own = DISCIPLINES[qdisc].options.model_fields
    for other, row in DISCIPLINES.items():
        for key in row.options.model_fields.keys() - own.keys():
            expected = rf"path.qdisc_options.{key}: not an option of {qdisc}; .*\b{other}\b"
            with pytest.raises(UserError, match=expected):
                make_scenario(document(qdisc, qdisc_options={key: 1}))


def test_each_direction_has_the_options_of_its_own_discipline() -> None:
    both = {"qdisc": "cake", "reverse_qdisc": "cake", "qdisc_options": {"rtt": "10ms"}}
    plan = resolve(make_scenario(document(**both)))["path"]
    assert plan["reverse_qdisc"]["aqm"]["rtt_ns"] == plan["qdisc"]["aqm"]["rtt_ns"] == 10**7
    own = {**both, "reverse_qdisc_options": {"rtt": "30ms"}}
    assert resolve(make_scenario(document(**own)))["path"]["reverse_qdisc"]["aqm"]["rtt_ns"] == 3e7
    fifo = {**both, "qdisc": "fifo", "qdisc_options": {}, "reverse_qdisc_options": {"rtt": "30ms"}}
    assert resolve(make_scenario(document(**fifo)))["path"]["reverse_qdisc"]["aqm"]["rtt_ns"] == 3e7
    other = resolve(make_scenario(document(**{**both, "reverse_qdisc": "codel"})))["path"]
    assert other["reverse_qdisc"]["aqm"]["target_ns"] == 5_000_000


def test_tc_counts_cakes_target_from_its_rtt_unless_it_is_given() -> None:
    metro = resolved("cake", qdisc_options={"rtt": "10ms"})["aqm"]
    assert metro["target_ns"] == 500_000
    given = resolved("cake", qdisc_options={"rtt": "10ms", "target": "2ms"})["aqm"]
    assert given["target_ns"] == 2_000_000


@pytest.mark.parametrize(
    ("qdisc", "most_ms"),
    [("cake", 12), ("pie", 20), ("fq_pie", 25), ("dualpi2", 20), ("codel", 12)],
)
def test_an_aqm_keeps_the_link_busy_and_the_delay_near_its_target(
    qdisc: str, most_ms: float
) -> None:
    raw = simulate(**document(qdisc))
    assert goodput_bps(raw) > 0.9 * 10e6 * 1448 / 1514
    late = column(raw, "flow_samples", "t_us") > 2e6
    delay_ms = column(raw, "flow_samples", "srtt_us")[late] / 1000 - 20
    assert np.median(delay_ms) < most_ms


def test_atm_framing_costs_what_its_cells_cost() -> None:
    # 1500 + 32 bytes are 32 cells of 53: of 10 Mbit/s remain 1448 bytes in 1696.
    options = {"framing": "atm", "overhead": 32}
    flows = {"cc": "bbr3", "count": 4}
    raw = simulate(**document("cake", flows, qdisc_options=options))
    assert goodput_bps(raw) == pytest.approx(10e6 * 1448 / 1696, rel=0.01)


def test_tbf_keeps_the_paths_rate() -> None:
    raw = simulate(**document("tbf", buffer="2bdp"))
    assert goodput_bps(raw) == pytest.approx(10e6 * 1448 / 1514, rel=0.01)


@pytest.mark.parametrize(
    ("qdisc", "options", "words"),
    [
        # dualpi2_policy and pie_timer(): whole microseconds, at least one.
        ("dualpi2", {"update": "1ns"}, "update: '1ns': must be at least 1us"),
        ("pie", {"update": "999ns"}, "update: '999ns': must be at least 1us"),
        # Kernels count them in 32 bits.
        ("tbf", {"burst": "1024GB"}, "burst: '1024GB': must be at most 2GB"),
        ("fq", {"quantum": "3GB"}, "quantum: '3GB': must be at most 2GB"),
    ],
)
def test_what_a_kernel_refuses_is_refused_by_its_key(
    qdisc: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        resolved(qdisc, qdisc_options=options)
