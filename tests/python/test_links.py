"""Links that damage and change, in whole runs of the simulator; and files that are no traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.cli import main
from fullpipe.metrics import View, summarise
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.scenario import link_trace_generators
from fullpipe.scenario.delay_distributions import table_of
from fullpipe.scenario.link_trace_generators import KINDS, Shape
from fullpipe.scenario.model import load_scenario, make_scenario
from helpers import column, simulate


def row(duration: str = "8s", **keys: Any) -> dict[str, Any]:
    link = {"name": "link", "rate": "10mbit", "delay": "20ms", **keys}
    link = {key: value for key, value in link.items() if value is not None}
    return {"duration": duration, "link": [link], "flow": [{"cc": "cubic"}]}


def last(raw: dict[str, Any], name: str, queue: str = "link.forward") -> int:
    rows = column(raw, "queue_samples", "queue") == queue
    return int(column(raw, "queue_samples", name)[rows][-1])


def goodput_bps(raw: dict[str, Any], seconds: float) -> float:
    return float(column(raw, "flows", "bytes_delivered").sum()) * 8 / seconds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1\n5\n4\n", ("line 3", "4", "after 5", "never decrease")),
        ("", ("is empty",)),
        ("1\ntwo\n", ("line 2", '"two"', "whole number of ms")),
        ("1\n" * 4_000_001, ("line 4000001", "at most 4000000")),
        ("0\n", ("line 1", "above 0")),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_file_line_and_value(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "bad.trace").write_text(text)
    (tmp_path / "s.toml").write_text(
        'duration = "1s"\n[[link]]\nname = "a"\nrate_trace = "bad.trace"\n[[flow]]\ncc = "reno"\n'
    )
    with pytest.raises(UserError) as caught:
        load_scenario(tmp_path / "s.toml")
    assert all(word in str(caught.value) for word in ("link.0", "rate_trace", "bad.trace", *words))


def test_a_trace_that_changed_after_planning_is_not_run(tmp_path: Path) -> None:
    from fullpipe.scenario import link_traces

    path = tmp_path / "rate.trace"
    path.write_text("1\n2\n")
    plan = resolve(make_scenario(row(rate=None, rate_trace=str(path))))
    link_traces.verify(plan)
    path.write_text("1\n2\n3\n")
    with pytest.raises(UserError, match="has changed"):
        link_traces.verify(plan)


def test_a_key_knows_what_a_trace_holds_and_not_where_it_lies(tmp_path: Path) -> None:
    from pydantic_core import to_json

    from fullpipe.sweep.keys import run_key

    keys = []
    for name, text in (("a", "1\n2\n"), ('b "quoted"', "1\n2\n"), ("c", "1\n3\n")):
        (tmp_path / name).write_text(text)
        plan = resolve(make_scenario(row(rate=None, rate_trace=str(tmp_path / name))))
        keys.append(run_key(to_json(plan), "sim", 0, 1, {}))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_trace_has_its_rate_its_length_and_its_seed(kind: str, tmp_path: Path) -> None:
    shape = Shape(rate_bps=8_000_000, duration_s=60, seed=3)
    made = link_trace_generators.generate(kind, shape)
    assert made.times_ms == sorted(made.times_ms)
    assert made.times_ms[-1] == 60_000
    mean = len(made.times_ms) * 1514 * 8 / 60
    most = {"steps": 0.55, "sawtooth": 0.55}.get(kind, 1.0)
    assert mean == pytest.approx(shape.rate_bps * most, rel=0.25)
    assert link_trace_generators.generate(kind, shape) == made
    other = link_trace_generators.generate(kind, Shape(8_000_000, 60, seed=4))
    assert (other == made) == (kind in ("steps", "sawtooth"))
    assert bool(made.delays_ms) == (kind == "leo")
    (tmp_path / "made").write_text(made.rate_text())
    make_scenario(row(rate=None, rate_trace=str(tmp_path / "made")))


def test_generators_refuse_what_would_be_empty_or_endless() -> None:
    for shape in (Shape(10, 1), Shape(10**12, 60), Shape(10**6, 0), Shape(10**6, 5, low=0)):
        with pytest.raises(UserError, match="--"):
            link_trace_generators.generate("sawtooth", shape)


def test_a_flow_fills_a_trace_as_it_fills_the_same_rate(tmp_path: Path) -> None:
    # A packet each ms is 12.112 Mbit/s on the wire.
    path = tmp_path / "steady.trace"
    path.write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    followed = simulate(**row(rate=None, rate_trace=str(path)))
    constant = simulate(**row(rate="12.112mbit"))
    assert goodput_bps(followed, 8) == pytest.approx(goodput_bps(constant, 8), rel=0.02)


def test_a_policed_flow_stays_at_the_rate_of_its_tokens_and_nothing_queues() -> None:
    raw = simulate(
        **row("20s", rate="100mbit", policer={"rate": "10mbit", "burst": "100KB"}),
    )
    assert goodput_bps(raw, 20) < 10e6 * 1.03
    assert goodput_bps(raw, 20) > 5e6
    assert last(raw, "dropped_packets") > 0
    assert column(raw, "queue_samples", "queue_bytes").max() < 100_000


def test_a_delay_with_a_limit_passes_as_many_packets_as_it_holds_in_its_time() -> None:
    # netem delay 100ms with its limit of 1000: 10,000 packets a second, whatever the rate is.
    link = {"rate": "1gbit", "delay": "100ms", "delay_limit": 1000, "reverse": {"delay": "0s"}}
    document = row("4s", **link) | {"flow": [], "udp": [{"rate": "500mbit", "payload": "1250B"}]}
    raw = simulate(**document)
    passed = np.count_nonzero(column(raw, "datagrams", "delay_us"))
    assert passed == pytest.approx(10_000 * 3.9, rel=0.002)
    assert last(raw, "dropped_packets") == pytest.approx((50_000 - 10_000) * 4, rel=0.01)


def test_a_limit_needs_a_delay() -> None:
    with pytest.raises(UserError, match="delay_limit: 10 needs a delay"):
        make_scenario(row("1s", delay="0s", delay_limit=10))


def test_loss_in_bursts_is_counted_as_loss_by_chance() -> None:
    raw = simulate(**row(gemodel={"p": "0.2%", "r": "40%"}, rate="5mbit"))
    lost, sent = last(raw, "random_lost_packets"), last(raw, "sent_packets")
    # p / (p + r) = 0.5 %; visits to the bad state are few and far between.
    assert 0.001 < lost / (sent + lost) < 0.015


def test_times_of_loss_are_the_same_whatever_is_sent() -> None:
    chain = {"good": "2s", "bad": "400ms"}
    seen = []
    for stream in ({"rate": "1mbit", "payload": "125B"}, {"rate": "1mbit", "payload": "250B"}):
        raw = simulate(**row("40s", gemodel=chain, rate="20mbit") | {"flow": [], "udp": [stream]})
        at_ms = column(raw, "datagrams", "t_us") // 1000
        seen.append(set(at_ms[column(raw, "datagrams", "delay_us") == 0].tolist()))
    # A packet a millisecond sees what one every second does, but for the edges of bad times.
    assert len({at for at in seen[0] if at % 2 == 0} ^ {at for at in seen[1]}) < 40
    # 400 ms of 2.4 s are bad; some 17 visits in 40 s.
    assert 0.04 < len(seen[0]) / 40_000 < 0.4


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        ({"good": "2s"}, "gemodel.bad: is missing"),
        ({"p": "1%"}, "gemodel.r: is missing"),
        ({"good": "2s", "bad": "1s", "p": "1%"}, "gemodel.p: '1%' excludes good and bad"),
        ({"good": "2s", "bad": "1us"}, "gemodel.bad: '1us': must be at least 1ms"),
    ],
)
def test_a_chain_is_by_packet_or_by_time(chain: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_scenario(row("1s", gemodel=chain))


def test_copies_and_overtaking_packets_change_nothing_of_what_is_delivered() -> None:
    document = row(duplicate="2%", reorder="1%", buffer="200KB")
    document["flow"] = [{"cc": "reno", "amount": "3MB"}]
    raw = simulate(**document)
    assert int(column(raw, "flows", "bytes_delivered")[0]) == 3 * 2**20
    health = raw["health"]
    assert 0 <= health["packets_in_flight"] < 1000


def test_acks_that_are_held_come_in_groups_and_cost_a_paced_flow_nothing() -> None:
    document = row(reverse={"hold": {"time": "10ms", "packets": 32}})
    document["flow"] = [{"cc": "bbr3"}]
    held = simulate(**document)
    assert goodput_bps(held, 8) > 0.8 * goodput_bps(simulate(**row()), 8)


def test_a_delay_trace_is_the_rtt_that_a_probe_sees(tmp_path: Path) -> None:
    path = tmp_path / "swing.delay"
    path.write_text("0 10\n1000 40\n2000 0\n")
    document = row("6s", delay=None, delay_trace=str(path), reverse={"delay": "5ms"})
    document["flow"] = [{"cc": "reno", "amount": "1KB"}]
    document["probe"] = [{"interval": "100ms", "start": "550ms"}]
    raw = simulate(**document)
    rtts = column(raw, "ping_samples", "rtt_us")
    sent_s = 0.55 + 0.1 * column(raw, "ping_samples", "seq")
    for at, rtt in zip(sent_s, rtts, strict=True):
        expected = 15_000 if int(at) % 2 == 0 else 45_000
        if at % 1 < 0.9:
            assert rtt == pytest.approx(expected, abs=300), at


def test_the_same_damage_and_seed_give_the_same_run() -> None:
    document = row("3s", gemodel={"p": "1%", "r": "30%"}, wifi_jitter="7ms", reorder="1%")
    one, two, other = (simulate(**document, seed=seed) for seed in (5, 5, 6))
    bytes_of = [
        column(raw, "flow_samples", "bytes_delivered").tolist() for raw in (one, two, other)
    ]
    assert bytes_of[0] == bytes_of[1] != bytes_of[2]


def wifi_row(**home: Any) -> dict[str, Any]:
    channel = {"standard": "n", "mcs": 7, "queue": {"kind": "driver", "packets": 500}}
    return {
        "duration": "6s",
        "link": [
            {"name": "core", "rate": "200mbit", "delay": "5ms"},
            {"name": "home", "kind": "wifi", "wifi": channel, **home},
            {"name": "line", "delay": "5ms"},
        ],
        "flow": [{"cc": "cubic"}],
        "probe": [{"interval": "50ms"}],
    }


def test_wifi_may_stand_anywhere_in_a_row() -> None:
    raw = simulate(**wifi_row())
    queues = set(column(raw, "queue_samples", "queue"))
    assert {"core.forward", "home.forward", "home.reverse"} <= queues
    # One stream of 20 MHz, MCS 7: 65 Mbit/s on the air, some 50 with aggregation.
    assert 35e6 < goodput_bps(raw, 6) < 60e6
    rtts = column(raw, "ping_samples", "rtt_us")
    assert rtts[rtts > 0].min() > 20_000
    assert float(np.median(rtts[-40:])) > 80_000, "500 packets wait in the driver"


def test_cake_in_front_of_wifi_keeps_the_drivers_queue_empty() -> None:
    raw = simulate(**wifi_row(rate="30mbit", qdisc="cake", reverse={"rate": "30mbit"}))
    queues = set(column(raw, "queue_samples", "queue"))
    assert {"home.up.forward", "home.forward", "home.down.reverse"} <= queues
    assert goodput_bps(raw, 6) == pytest.approx(28e6, rel=0.07)
    rtts = column(raw, "ping_samples", "rtt_us")
    assert float(np.median(rtts[-40:])) < 40_000


@pytest.mark.parametrize(
    ("home", "words"),
    [
        ({"delay": "5ms"}, "link.1.delay: '5ms' a Wi-Fi link has none"),
        ({"qdisc": "cake"}, "link.1.rate: a queue before the channel needs one"),
        ({"kind": "wire"}, "link.1.wifi"),
        ({"wifi": {"standard": "n", "mcs": 99}}, "link.1.wifi"),
    ],
)
def test_a_wifi_link_that_cannot_be_is_refused(home: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        make_scenario(wifi_row(**home))
    assert words in str(caught.value)


def test_each_link_is_summarised_by_its_name_in_json_table_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first link's rate changes, the second is the bottleneck, the third is a channel."""
    document = {
        "duration": "6s", "warmup": "2s",
        "link": [
            {"name": "core", "rate": "20mbit", "delay": "5ms", "rate_steps": [["3s", "30mbit"]]},
            {"name": "access", "rate": "10mbit", "delay": "5ms", "buffer": "30KB"},
            {"name": "home", "kind": "wifi", "wifi": {"standard": "n", "mcs": 7}},
        ],
        "flow": [{"cc": "cubic"}],
    }  # fmt: skip
    text = tomli_w.dumps(document)
    (tmp_path / "row.toml").write_text(text)
    folder = tmp_path / "r"
    monkeypatch.setattr(
        "sys.argv", ["fullpipe", "run", f"{tmp_path}/row.toml", "--out", str(folder)]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    summary = summarise(Recording.open(folder))
    links = {(link["link"], link["direction"]): link for link in summary["links"]}
    ways = [("core", "forward"), ("access", "forward"), ("home", "forward"), ("home", "reverse")]
    assert list(links) == ways
    access, view = links["access", "forward"], View(Recording.open(folder))
    assert access["drops"] == summary["path"]["drops"] > 0
    waited = view.queue("access.forward")["queue_bytes"] * 8 / 10e6 * 1e3
    assert access["queue_delay_ms"]["p50"] == pytest.approx(np.median(waited))
    assert access["throughput_bps"] == pytest.approx(10e6, rel=0.02)
    # 1 s at 20 Mbit/s and 3 s at 30.
    assert links["core", "forward"]["utilisation"] == pytest.approx(10 / 27.5, rel=0.02)
    assert links["home", "reverse"]["rate_bps"] is links["home", "reverse"]["utilisation"] is None
    assert links["home", "reverse"]["queue_delay_ms"]["p50"] is None
    assert links["home", "reverse"]["throughput_bps"] > 0, "acknowledgements"
    page = (folder / "report.html").read_text(encoding="utf-8")
    for name in ("core", "access", "home"):
        assert any(name in line and "forward" in line for line in printed.splitlines()), name
        assert f'<td class="text">{name}</td>' in page


def test_of_copies_of_a_packet_the_first_to_arrive_counts() -> None:
    # Every packet comes twice to a link that takes 42 ms for each of them.
    slow = {"name": "slow", "rate": "200kbit", "delay": "1ms", "buffer": "100pkt"}
    raw = simulate(
        duration="5s",
        link=[{"name": "copies", "rate": "1gbit", "delay": "1ms", "duplicate": 1.0}, slow],
        udp=[{"rate": "50kbit", "payload": "1000B"}],
        probe=[{"interval": "100ms", "start": "50ms"}],
    )
    delays_us = column(raw, "datagrams", "delay_us")
    assert len(delays_us) > 30
    assert set(delays_us[:-1]) == {2000}
    # A probe waits for no copy of itself.
    rtts_us = column(raw, "ping_samples", "rtt_us")
    assert rtts_us.min() == 4000


def test_a_flow_that_is_stopped_sends_no_more_than_its_amount() -> None:
    # All is written at once, and the window lets it go in several round trips.
    raw = simulate(
        duration="1s",
        path={"rate": "500mbit", "rtt": "56ms"},
        flow=[{"cc": "bbr3", "amount": "49992B", "stop": "100ms"}],
    )
    assert column(raw, "flows", "bytes_delivered")[0] == 49992


def jittered(distribution: str = "uniform") -> Any:
    """Delays in ms of packets, one each 100 us, with netem's jitter of 3 ms about 40 ms."""
    link = {"delay": "40ms", "delay_jitter": "3ms", "delay_distribution": distribution}
    link |= {"rate": "1gbit", "reverse": {"delay": "0s"}}
    document = row("12s", **link)
    document |= {"flow": [], "udp": [{"rate": "100mbit", "payload": "1250B"}]}
    delays = column(simulate(**document), "datagrams", "delay_us").astype(float) / 1000
    return delays[delays > 0]


@pytest.mark.parametrize(
    ("distribution", "mean_ms", "deviation_ms"),
    [
        ("uniform", 0, 3 / np.sqrt(3)),
        ("normal", 0, 3),
        # Pareto with a = 3, less its mean, times 4/3, cut above 4: integrals of the inverse.
        ("pareto", -0.0329 * 3, 0.8209 * 3),
        ("paretonormal", -0.0247 * 3, 0.8349 * 3),
    ],
)
def test_jitter_has_the_moments_of_its_distribution(
    distribution: str, mean_ms: float, deviation_ms: float
) -> None:
    delays = jittered(distribution)
    assert delays.size > 100_000
    assert delays.mean() - 40 == pytest.approx(mean_ms, abs=0.06)
    assert delays.std() == pytest.approx(deviation_ms, rel=0.02)


def test_tables_are_those_of_tc_within_a_unit(tmp_path: Path) -> None:
    # Some lines of iproute2's tables, by their place: 8192 is a standard deviation.
    tables = {name: table_of(name) for name in ("normal", "pareto", "paretonormal")}
    assert {name: len(table) for name, table in tables.items()} == dict.fromkeys(tables, 4096)
    assert tables["normal"][:4] == pytest.approx([-32768, -28307, -26871, -25967], abs=1)
    assert tables["normal"][-3:] == pytest.approx([26164, 27159, 28858], abs=1)
    assert tables["pareto"][:4] + tables["pareto"][-1:] == [-5461, -5460, -5460, -5459, 32767]
    assert tables["paretonormal"][:3] == pytest.approx([-12305, -11171, -10812], abs=1)
    assert tables["paretonormal"][-3:] == pytest.approx([31116, 31365, 31789], abs=1)
    for name, table in tables.items():
        file = tmp_path / f"{name}.dist"
        file.write_text("# as tc has them\n" + " ".join(map(str, table)))
        assert table_of(str(file)) == table


def test_a_table_of_a_file_is_drawn_from_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "two.dist").write_text("# twice 8192\n-8192 8192\n")
    delays = jittered(str(tmp_path / "two.dist"))
    assert set(np.unique(delays.round())) == {37, 43}
    for content, words in [("1 x", "line 1: 'x' is no whole"), ("", "0 numbers"),
                           ("40000", "line 1: 40000 is not")]:  # fmt: skip
        (tmp_path / "bad.dist").write_text(content)
        with pytest.raises(UserError, match=f"delay_distribution: .*bad.dist: .*{words}"):
            jittered(str(tmp_path / "bad.dist"))
    with pytest.raises(UserError, match=r"none\.dist: cannot be read; write uniform, normal"):
        jittered("none.dist")


def test_jitter_reorders_and_each_packet_draws_anew() -> None:
    delays = jittered()
    assert abs(np.corrcoef(delays[:-1], delays[1:])[0, 1]) < 0.02
    arrivals = 0.1 * np.arange(delays.size) + delays
    # Of two packets 0.1 ms apart, the second is first if its draw is lower by more: two uniform
    # draws over 6 ms.
    overtaking = (np.diff(arrivals) < 0).mean()
    assert overtaking == pytest.approx((1 - 0.1 / 6) ** 2 / 2, abs=0.01)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"delay": "0s", "delay_jitter": "1ms"}, "delay_jitter: .* needs a delay"),
        ({"delay_distribution": "normal"}, "delay_distribution: .*needs delay_jitter"),
        ({"delay_jitter": "1ms", "hold": {"time": "1ms"}}, "delay_jitter: .*excludes hold"),
        ({"delay_jitter": "3s"}, "delay_jitter"),
    ],
)
def test_jitter_that_contradicts_the_link_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_scenario(row("1s", **{"delay": "10ms", **keys}))


def test_traces_and_tables_may_begin_with_a_mark_and_end_lines_as_on_windows(
    tmp_path: Path,
) -> None:
    table = "-8192 0 8192\n" * 1000
    texts = {"rate": "1\n2\n10\n", "delay": "0 5\n100 6\n1000 5\n", "table": table}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode())
    make_scenario(row(rate=None, rate_trace=str(tmp_path / "rate")))
    make_scenario(row(delay=None, delay_trace=str(tmp_path / "delay")))
    make_scenario(row(delay_jitter="1ms", delay_distribution=str(tmp_path / "table")))
