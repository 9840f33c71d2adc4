"""Plans: links, delays, hosts, starts and what metrics read of them, done by hand."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.base.units import Spread
from fullpipe.plan.bottleneck import (
    Capacity,
    bottleneck,
    bottleneck_of,
    data_directions,
    link_capacity,
    main_queue,
)
from fullpipe.plan.facts import equal_demand, facts_of, link_queues
from fullpipe.plan.resolve import resolve
from fullpipe.plan.seeds import longer, rtt_offset_ns, start_offset_ns, without_seed
from fullpipe.scenario.model import make_scenario

MS = 1_000_000
FLOWS = [{"cc": "cubic"}]


def plan(seed: int | None = None, **more: Any) -> dict[str, Any]:
    path = {"rate": "10mbit", "rtt": "40ms", **more.pop("path", {})}
    given = {"duration": "10s", "path": path, "flow": FLOWS, **more}
    return resolve(make_scenario(given), seed)


def linked(*links: dict[str, Any], **more: Any) -> dict[str, Any]:
    return resolve(make_scenario({"duration": "10s", "link": list(links), "flow": FLOWS, **more}))


def forward(found: dict[str, Any], place: int = 0, way: str = "forward") -> dict[str, Any]:
    wire: dict[str, Any] = found["links"][place]["medium"][way]
    return wire


def test_a_path_is_one_wire_with_its_delay_behind_it() -> None:
    found = plan(path={"forward_delay": "15ms", "loss": "1.5%", "loss_correlation": 0.25,
                       "reverse_loss": 0.001, "jitter": "2ms"})  # fmt: skip
    (link,) = found["links"]
    assert link["name"] == "path" and forward(found)["rate_bps"] == 10_000_000
    assert forward(found)["delay_ns"] == 0 and forward(found, way="reverse")["rate_bps"] is None
    path = found["path"]
    assert (path["forward_delay_ns"], path["reverse_delay_ns"]) == (15 * MS, 25 * MS)
    assert found["access"]["reverse_delay_ns"] == 25 * MS
    assert path["loss"] == {
        "probability_ppm": 15_000, "correlation_ppm": 250_000, "ecn": False, "per_burst": False,
    }  # fmt: skip
    assert path["reverse_loss"]["probability_ppm"] == 1000
    assert path["jitter"] == {"shape": "per_packet", "max_ns": 2 * MS}
    assert plan()["path"]["loss"] is None and plan()["path"]["jitter"] is None
    assert plan()["path"]["forward_delay_ns"] == 0


def test_a_buffer_in_bdp_is_of_its_own_direction() -> None:
    found = plan(path={"buffer": "2bdp", "reverse_rate": "2mbit", "reverse_buffer": "1bdp"})
    # 10 Mbit/s x 40 ms are 50,000 B.
    assert found["path"]["qdisc"]["limit_bytes"] == 100_000
    assert found["path"]["reverse_qdisc"]["limit_bytes"] == 10_000


def test_the_reverse_rate_is_the_forward_one_where_data_flow_down() -> None:
    down: list[dict[str, Any]] = [
        {"flow": [{"cc": "cubic", "direction": "down"}]},
        {"udp": [{"rate": "1mbit", "direction": "down"}]},
    ]  # fmt: skip
    for more in down:
        assert plan(**more)["path"]["reverse_rate_bps"] == 10_000_000
    assert plan()["path"]["reverse_rate_bps"] is None
    given = plan(path={"reverse_rate": "3mbit"}, flow=[{"cc": "cubic", "direction": "down"}])
    assert given["path"]["reverse_rate_bps"] == 3_000_000


def test_links_have_delays_of_their_own_and_steps_with_outages() -> None:
    found = linked(
        {"name": "a", "rate": "10mbit", "delay": "5ms", "reverse": {"delay": "7ms"},
         "rate_steps": [["2s", "4mbit"], ["6s", "8mbit"]],
         "outage": [["1s", "500ms"], ["5s", "2s"]]},
        {"name": "b", "rate": "20mbit", "delay": "1ms"},
    )  # fmt: skip
    second = 10**9
    assert forward(found)["rate_steps"] == [
        [second, 0], [3 * second // 2, 10_000_000], [2 * second, 4_000_000], [5 * second, 0],
        [6 * second, 0], [7 * second, 8_000_000],
    ]  # fmt: skip
    assert (
        forward(found)["delay_ns"] == 5 * MS and forward(found, way="reverse")["delay_ns"] == 7 * MS
    )
    assert found["access"]["forward_delay_ns"] == found["access"]["reverse_delay_ns"] == 0
    assert found["flows"][0]["route"] == {"enter": 0, "leave": 1}


def test_seeds_draw_starts_and_round_trips_by_sha_256() -> None:
    def drawn(spread: int, purpose: str) -> int:
        digest = hashlib.sha256(purpose.encode()).digest()
        return int.from_bytes(digest[:8], "little") % (spread + 1)

    assert start_offset_ns(1000, 7, 2) == drawn(1000, "start_spread 7 2")
    assert rtt_offset_ns(1000, 7) == drawn(1000, "rtt_spread 7")
    assert start_offset_ns(0, 7, 2) == 0
    assert {start_offset_ns(1, seed, 0) for seed in range(30)} == {0, 1}
    found = plan(3, start_spread="5ms", rtt_spread="2ms",
                 flow=[{"cc": "cubic", "count": 2, "start": "1s",
                        "start_step": "100ms"}])  # fmt: skip
    starts = [flow["start_ns"] for flow in found["flows"]]
    assert starts == [
        1000 * MS + drawn(5 * MS, "start_spread 3 0"),
        1100 * MS + drawn(5 * MS, "start_spread 3 1"),
    ]
    more = drawn(2 * MS, "rtt_spread 3")
    assert (
        found["path"]["reverse_delay_ns"] == found["access"]["reverse_delay_ns"] == 40 * MS + more
    )
    assert found["path"]["forward_delay_ns"] == 0 and found["seed"] == 3
    # Without the seed, repetitions are equal.
    bare = [
        without_seed(plan(seed, start_spread="5ms", rtt_spread="2ms"), 5 * MS, Spread("ns", 2 * MS))
        for seed in (1, 2)
    ]
    assert bare[0] == bare[1] and bare[0]["path"]["reverse_delay_ns"] == 40 * MS
    assert bare[0]["flows"][0]["start_ns"] == 0 and bare[0]["seed"] is None


def test_longer_round_trips_change_what_has_a_delay_of_its_own() -> None:
    found = plan(flow=[{"cc": "cubic"}, {"cc": "reno", "rtt": "60ms"}])
    more = longer(found, 5)
    assert [flow["reverse_delay_ns"] for flow in more["flows"]] == [None, 60 * MS + 5]
    assert more["path"]["reverse_delay_ns"] == 40 * MS + 5
    assert more["path"]["qdisc"] == found["path"]["qdisc"] and longer(found, 0) == found


def test_flows_are_named_numbered_and_put_on_hosts() -> None:
    found = plan(flow=[{"cc": "cubic", "count": 2}, {"cc": "reno", "name": "own"},
                       {"cc": "reno", "name": "web", "count": 2}, {"cc": "reno"},
                       {"cc": "cubic", "rtt": "60ms"}])  # fmt: skip
    names = [flow["name"] for flow in found["flows"]]
    assert names == ["cubic.1", "cubic.2", "own", "web.1", "web.2", "reno.4", "cubic.3"]
    near = [flow["hosts"]["near"] for flow in found["flows"]]
    assert near == [0, 0, 0, 0, 0, 0, 1]  # another round trip is another host
    assert {flow["hosts"]["far"] for flow in found["flows"]} == {0}
    jittery = plan(flow=[{"cc": "cubic", "jitter": "1ms", "count": 2}, {"cc": "cubic"}])
    assert [flow["hosts"]["near"] for flow in jittery["flows"]] == [0, 1, 2]
    mixed = plan(flow=[{"cc": "cubic", "ecn": True}, {"cc": "cubic"}, {"cc": "cubic", "host": 1}])
    assert [flow["hosts"]["near"] for flow in mixed["flows"]] == [0, 1, 2]
    access = plan(host={"access_rate": "100mbit"}, flow=[{"cc": "cubic", "count": 2}])
    assert [flow["hosts"]["near"] for flow in access["flows"]] == [0, 1]
    assert [flow["hosts"]["far"] for flow in access["flows"]] == [0, 0]
    with pytest.raises(UserError, match="used twice"):
        plan(flow=[{"cc": "cubic", "name": "a"}, {"cc": "reno", "name": "a"}])


def test_a_round_trip_of_its_own_is_no_less_than_the_forward_delay() -> None:
    found = plan(path={"forward_delay": "15ms"}, flow=[{"cc": "cubic", "rtt": "15ms"}])
    assert found["flows"][0]["forward_delay_ns"] == 15 * MS
    assert found["flows"][0]["reverse_delay_ns"] == 0
    with pytest.raises(UserError, match="is less than"):
        plan(path={"forward_delay": "15ms"}, flow=[{"cc": "cubic", "rtt": "14ms"}])
    links = linked({"name": "a", "rate": "5mbit", "delay": "5ms", "reverse": {"delay": "10ms"}},
                   flow=[{"cc": "cubic", "rtt": "40ms"}])  # fmt: skip
    assert links["flows"][0]["forward_delay_ns"] == 0
    assert links["flows"][0]["reverse_delay_ns"] == 25 * MS


def test_different_hosts_go_to_different_servers_unless_said_otherwise() -> None:
    def ends(**keys: Any) -> list[tuple[int, int]]:
        found = plan(flow=[{"cc": "cubic"}], **keys)
        kinds = ("flows", "datagrams", "pages", "probes")
        both = [one["hosts"] for kind in kinds for one in found.get(kind, [])]
        return [(hosts["near"], hosts["far"]) for hosts in both]

    of_two = {"udp": [{"rate": "1mbit", "host": 2}],
              "page": [{"cc": "cubic", "levels": [["1KB"]], "host": 2}],
              "probe": [{"host": 2}, {}]}  # fmt: skip
    assert ends(**of_two) == [(0, 0), (1, 1), (1, 1), (1, 1), (0, 0)]
    shared = {key: [{**one, "far_host": 0} for one in of_two[key]] for key in of_two}
    assert ends(**shared) == [(0, 0), (1, 0), (1, 0), (1, 0), (0, 0)]


def test_what_a_host_leaves_at_its_default_is_left_out() -> None:
    usual = plan()["host"]
    assert not {"tcp", "program_timer_ns", "cc_facts", "work", "reader_pauses"} & usual.keys()
    assert usual["pacing_shift"] == 10 and usual["access_rate_bps"] == 0
    found = plan(host={"tsq": "2ms", "packet_cost": "3us"})["host"]
    assert found["pacing_shift"] == 9 and found["work"] == {"packet_ns": 3000, "ack_ns": 0}
    assert plan(host={"tsq": "8ms"})["host"]["pacing_shift"] == 7


def wire(rate: float | None, **more: Any) -> dict[str, Any]:
    return {"rate_bps": rate, "qdisc": {"name": rate}, **more}


def row(*rates: tuple[float | None, float | None]) -> dict[str, Any]:
    return {"links": [
        {"name": name, "medium": {"kind": "wire", "forward": wire(one), "reverse": wire(other)}}
        for name, (one, other) in zip("abc", rates, strict=False)
    ]}  # fmt: skip


def test_the_bottleneck_is_the_first_of_the_slowest_links_in_a_direction() -> None:
    found = row((9, None), (5, 3), (5, 2))
    assert bottleneck(found) == "b"
    up, down = bottleneck_of(found, "forward"), bottleneck_of(found, "reverse")
    assert (up.queue, up.rate_bps, up.qdisc) == ("b.forward", 5, {"name": 5})
    assert (down.queue, down.rate_bps) == ("c.reverse", 2)
    assert up.capacity == Capacity(((0.0, 5.0),)) and up.capacity.is_constant
    old = {"path": {"rate_bps": 7, "qdisc": {"q": 1}, "reverse_rate_bps": None}}
    one, other = bottleneck_of(old, "forward"), bottleneck_of(old, "reverse")
    assert (one.queue, one.rate_bps, one.qdisc) == ("forward", 7, {"q": 1})
    assert (other.queue, other.rate_bps, other.capacity) == ("reverse", None, Capacity())
    assert bottleneck({}) == "path" and bottleneck_of({}, "forward").rate_bps is None


def test_a_capacity_is_its_rates_in_seconds_or_is_not_known() -> None:
    def of(**more: Any) -> Capacity:
        return link_capacity({"medium": {"forward": wire(8, **more)}}, "forward")

    steps = of(rate_steps=[[2 * 10**9, 4], [3 * 10**9, 0]])
    assert steps.rates == ((0, 8), (2, 4), (3, 0)) and not steps.is_constant
    assert of(qdisc={"aqm": {"autorate_ingress": True}}) == Capacity()
    assert of(qdisc={"aqm": {"autorate_ingress": False}}).is_constant
    assert (
        of(rate_bps=None) == Capacity()
        and of(rate_trace={"path": "/none", "sha256": ""}) == Capacity()
    )
    assert link_capacity({"medium": {"kind": "wifi"}}, "forward") == Capacity()


@pytest.mark.parametrize(
    ("given", "flows", "directions"),
    [
        ({}, [], ["forward"]), ({}, ["up"], ["forward"]), ({}, ["down"], ["reverse"]),
        ({}, ["down", "up"], ["forward", "reverse"]), ({"pages": [1]}, [], ["reverse"]),
        ({"pages": [1]}, ["up"], ["forward", "reverse"]),
        ({"traffic": [{"direction": "down"}]}, [], ["reverse"]),
        ({"datagrams": [{"direction": "down"}]}, [], ["reverse"]),
        ({"datagrams": [{"direction": "down"}]}, ["up"], ["forward"]),
    ],
)  # fmt: skip
def test_data_go_in_these_directions(given: Any, flows: Any, directions: Any) -> None:
    assert data_directions(given, flows) == directions
    assert main_queue(given, flows).queue == directions[0]


def test_facts_are_in_seconds_and_not_known_where_a_plan_says_nothing() -> None:
    found = facts_of(plan(sample_interval="20ms"), ["up"], 500 * MS)
    assert (found.start_s, found.end_s, found.sample_interval_s, found.rtt_s) == (
        0.5,
        10,
        0.02,
        0.04,
    )
    assert [queue.name for queue in found.queues] == ["forward"]
    bare = facts_of({}, [], 0)
    assert bare.end_s == math.inf and math.isnan(bare.rtt_s) and bare.sample_interval_s == 0
    queues = link_queues(row((9, None), (5, 3)))
    assert [(one.link, one.direction, one.rate_bps, one.queue.name) for one in queues] == [
        ("a", "forward", 9, "a.forward"), ("b", "forward", 5, "b.forward"),
        ("b", "reverse", 3, "b.reverse"),
    ]  # fmt: skip
    wifi = {"links": [{"name": "w", "medium": {"kind": "wifi"}}]}
    assert [one.rate_bps for one in link_queues(wifi)] == [None, None]


@pytest.mark.parametrize(
    ("flows", "directions", "equal"),
    [
        ([{}, {}], "uu", (0, 1)), ([{}], "u", ()), ([{}, {}], "ud", ()),
        ([{}, {}, {}], "uud", (0, 1)), ([{"amount_bytes": 5}, {}, {}], "uuu", (1, 2)),
        ([{"amount_bytes": 5}, {"amount_bytes": 5}], "uu", (0, 1)),
        ([{"amount_bytes": 5}, {"amount_bytes": 6}], "uu", ()),
        ([{"app_rate_bps": 5}, {"app_rate_bps": 5}, {}], "uuu", ()),
        ([{"amount_bytes": None}, {"name": "a", "cc": 1, "start_ns": 3}], "uu", ()),
        ([{"name": "a", "cc": 1, "start_ns": 3, "hosts": 1}, {"name": "b"}], "uu", (0, 1)),
        ([{"receive_window_bytes": 1}, {}], "uu", ()), (None, "uu", (0, 1)), ([{}], "uu", (0, 1)),
    ],
)  # fmt: skip
def test_flows_of_equal_demand(flows: Any, directions: str, equal: tuple[int, ...]) -> None:
    names = {"u": "up", "d": "down"}
    assert equal_demand({"flows": flows}, [names[one] for one in directions]) == equal
