"""Hunts, tuning, choices and predictions' regions: their numbers against values done by hand."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fullpipe.agreement.expected import beyond, region_of, sentence
from fullpipe.agreement.regions import Facts, Limits, the_map
from fullpipe.base.errors import RunError, UserError
from fullpipe.choose import figure, ranking
from fullpipe.choose.ranking import GOALS, Length, Option, Question
from fullpipe.expr.language import ExpressionError
from fullpipe.hunt import hunting
from fullpipe.hunt.hunting import Hunt
from fullpipe.hunt.rates import words_of
from fullpipe.hunt.space import (
    BUFFER,
    JITTER,
    KNOBS,
    LOSS,
    RATE,
    TRACE,
    TRACE_LOW,
    TRACE_S,
    badness,
    described,
    document,
    kind_of,
    matters,
    packets_of,
    plain,
    seconds_of,
)
from fullpipe.scenario.model import make_scenario
from fullpipe.statistics.intervals import wilson
from fullpipe.tune import settings
from fullpipe.tune.file import read_search
from fullpipe.tune.objective import Objective
from fullpipe.tune.outcome import (
    document_of,
    looked_at,
    read_best,
    write_held_out,
    write_search,
)
from fullpipe.tune.searching import Found, Trial, Variant, search
from fullpipe.tune.settings import Bench, Result

PATH = {knob.name: knob.usual for knob in KNOBS["utilisation"]}


def test_a_knobs_range_is_logarithmic_and_its_first_third_is_off() -> None:
    assert (RATE.at(0), RATE.at(0.5), RATE.at(1)) == (5, 15.8, 50)
    # Below 0.3 it is off; 0.65 is the middle of the rest: sqrt(0.01 x 5).
    assert (LOSS.at(0.29), LOSS.at(0.3), LOSS.at(0.65), LOSS.at(1)) == (0, 0.01, 0.224, 5)
    assert [TRACE.at(share) for share in (0, 0.29, 0.3, 0.439, 0.441, 0.99, 1)] == [
        0, 0, 1, 1, 2, 5, 5,
    ]  # fmt: skip
    assert TRACE.described(2) == "sawtooth" and RATE.described(7) == 7


def test_a_path_is_plain_without_what_has_no_effect() -> None:
    moved = {**PATH, "trace_s": 5.0, "trace_low": 0.1}
    assert plain(moved) == PATH and kind_of(moved) is None
    steps = {**moved, "trace": 1.0, "trace_s": 1.239}
    assert kind_of(steps) == "steps" and plain(steps)["trace_low"] == 0.1
    assert plain(steps)["trace_s"] == 1.24
    leo = {**moved, "trace": 3.0}
    assert plain(leo)["trace_s"] == 5 and plain(leo)["trace_low"] == TRACE_LOW.usual
    assert matters(TRACE_S, leo) and not matters(TRACE_LOW, leo) and matters(TRACE_LOW, steps)
    assert not matters(TRACE_S, PATH)
    assert described(leo)["trace"] == "leo" and "trace_low" not in described(leo)
    assert "trace_s" not in described(PATH) and described(PATH)["rate_mbit"] == 10


def test_a_trial_lasts_three_warm_ups_and_whole_periods_of_a_trace() -> None:
    # 12 s and 150 round trips of 40 ms are 18 s.
    assert seconds_of(PATH) == pytest.approx(18)
    assert seconds_of({**PATH, "rtt_ratio": 4.0}) == pytest.approx(36)
    assert seconds_of({**PATH, "rtt_ms": 41.0}) == pytest.approx(19)
    # Measured are 12 s, in periods of 5 s 15.
    assert seconds_of({**PATH, "trace": 1.0, "trace_s": 5.0}) == pytest.approx(6 + 15)
    assert packets_of(PATH) == pytest.approx(10e6 * 18 / (1514 * 8))


def test_badness_is_more_where_it_is_worse() -> None:
    assert badness("utilisation", 0.3) == pytest.approx(0.7)
    assert badness("starvation", 0.2) == pytest.approx(0.8)
    assert badness("delay", 3) == 3 and badness("loss", 0.1) == 0.1
    assert badness("delay", math.nan) == -1 and badness("utilisation", math.nan) == -1


def test_the_scenario_of_a_path_by_hand() -> None:
    found = document("cubic", "utilisation", {**PATH, "loss_percent": 0.3, "jitter_ms": 5.0}, None)
    # 10 Mbit/s x 40 ms are 33.03 frames.
    assert found["path"] == {"rate": "10mbit", "rtt": "40ms", "buffer": "34pkt", "loss": "0.3%"}
    assert (found["duration"], found["warmup"], found["seed"]) == ("18s", "6s", 1)
    assert found["flow"] == [{"cc": "cubic", "jitter": "5ms", "jitter_shape": "slotted"}]
    least = document("cubic", "delay", {**PATH, "buffer_bdp": 0.1}, "file")
    link = least["link"][0]
    assert link["buffer"] == "4pkt" and link["rate_trace"] == "file" and link["delay"] == "0ms"
    assert link["reverse"] == {"delay": "40ms"} and "path" not in least
    two = {knob.name: knob.usual for knob in KNOBS["starvation"]}
    pair = document("x", "starvation", {**two, "rtt_ratio": 2.0, "jitter_of_one_ms": 1.0}, None)
    assert pair["flow"][0]["jitter"] == "1ms" and pair["flow"][1] == {
        "cc": "x", "name": "other", "rtt": "80ms",
    }  # fmt: skip
    words = words_of({**PATH, "trace": 2.0, "trace_s": 3.0, "trace_low": 0.2}, "f.trace")
    assert list(words) == [
        "fullpipe", "trace", "generate", "sawtooth", "f.trace", "--rate", "10mbit",
        "--duration", "3s", "--period", "3s", "--low", "0.2",
    ]  # fmt: skip


def tables(**path: Any) -> dict[str, pa.Table]:
    shares = path.pop("shares", [])
    usual = {"utilisation": 0.9, "queue_delay_p95_rttmin": 2.0, "loss_ratio": 0.1}
    return {
        "path": pa.table({name: pa.array([value], pa.float64())
                          for name, value in {**usual, **path}.items()}),
        "flows": pa.table({"share": pa.array(shares, pa.float64())}),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("worst", "given", "value"),
    [
        ("utilisation", tables(), 0.9), ("delay", tables(), 2), ("loss", tables(), 0.1),
        ("starvation", tables(shares=[0.3, 0.7]), 0.6), ("starvation", tables(), None),
        ("starvation", tables(shares=[None, 0.7]), 0.7), ("loss", tables(loss_ratio=None), None),
        ("loss", None, None),
    ],
)  # fmt: skip
def test_a_hunt_measures_runs_once_and_counts_what_it_spends(
    worst: Any, given: Any, value: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []

    def trials(documents: Any, _jobs: Any) -> Any:
        ran.extend(documents)
        return [given] * len(documents)

    monkeypatch.setattr(hunting, "run_trials", trials)
    told: list[float] = []
    hunt = Hunt("cubic", worst, 1, 1e6, on_progress=told.append)
    hunt.rates = SimpleNamespace(file=lambda _path: None)  # type: ignore[assignment]
    path = {knob.name: knob.usual for knob in KNOBS[worst]}
    found = hunt._measured([path, path])
    assert found == pytest.approx([math.nan if value is None else value] * 2, nan_ok=True)
    hunt._measured([path])
    assert len(ran) == hunt.count == 1
    assert hunt.spent == pytest.approx(10_000 + packets_of(path))
    assert told == [pytest.approx(hunt.spent / 1e6)]


def made_hunt(worst: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> Hunt:
    """A hunt over paths whose measurement is a function of the path."""
    hunt = Hunt("cubic", worst, 1, 2e7)

    def measured(paths: Any, cc: str | None = None) -> list[float]:
        hunt.spent += sum(map(packets_of, paths))
        return [value(path) if cc is None else 1.0 for path in paths]

    monkeypatch.setattr(hunt, "_measured", measured)
    return hunt


def test_a_finding_keeps_what_it_needs_with_round_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    # Utilisation falls by loss alone: 10 % for each percent.
    hunt = made_hunt("utilisation", lambda p: 1 - 0.1 * p["loss_percent"], monkeypatch)
    path = {**PATH, "loss_percent": 4.3, "jitter_ms": 33.0, "rate_mbit": 17.3, "trace": 1.0}
    found = hunt._finding(path, KNOBS["utilisation"], ["bbr1", "cubic"])
    assert found.needs == ("loss_percent",) and found.found == pytest.approx(0.57)
    # 80 % of a badness of 0.43 is 0.344: the least nice loss that is enough is 4 %.
    assert found.path["loss_percent"] == 4 and found.value == pytest.approx(0.6)
    assert (found.path["trace"], found.path["jitter_ms"], found.path["rate_mbit"]) == (0, 0, 10)
    assert list(found.profile["loss_percent"]) == [0, *LOSS.nice]
    assert found.profile["loss_percent"][2] == pytest.approx(0.8)
    assert found.others == {"bbr1": 1.0}


def test_an_ingredient_is_left_out_where_60_of_100_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(share: float) -> tuple[str, ...]:
        # Loss is bad by 0.5; jitter multiplies, so that without it `share` is left.
        hunt = made_hunt(
            "delay", lambda p: 5 * (1 if p["jitter_ms"] > 0 else share) * (p["loss_percent"] > 0),
            monkeypatch,
        )  # fmt: skip
        path = {**PATH, "loss_percent": 1.0, "jitter_ms": 50.0}
        return hunt._finding(path, KNOBS["delay"], []).needs

    assert of(0.61) == ("loss_percent",) and of(0.59) == ("loss_percent", "jitter_ms")


def test_numbers_are_rounded_where_80_of_100_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    hunt = made_hunt("delay", lambda p: p["buffer_bdp"], monkeypatch)
    found = hunt._finding({**PATH, "buffer_bdp": 6.2}, KNOBS["delay"], [])
    # 5 is 80.6 % of 6.2; of 6.3 it is 79.4 %, and 10 is next.
    assert found.path["buffer_bdp"] == 5 and found.needs == ()
    assert found.profile == {BUFFER.name: {value: value for value in BUFFER.nice}}
    assert hunt._finding({**PATH, "buffer_bdp": 6.3}, KNOBS["delay"], []).path["buffer_bdp"] == 10


def test_a_hunt_ends_where_nothing_notable_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    hunt = made_hunt("loss", lambda p: 0.019, monkeypatch)
    assert hunt.run() == [] and hunt.spent < 2e7
    twice = made_hunt("loss", lambda p: 0.02 if p["jitter_ms"] >= JITTER.low else 0.0, monkeypatch)
    (only,) = twice.run()
    assert only.needs == ("jitter_ms",) and only.path["jitter_ms"] == JITTER.low


def test_an_objective_is_an_expression_over_measures() -> None:
    names = ["own.queue", "own.utilisation", "other.loss"]
    found = Objective("own.queue + 2 * max(0, 0.97 - own.utilisation)", names)
    assert found.names == {"own.queue", "own.utilisation"}
    assert found.value({"own.queue": 1.0, "own.utilisation": 0.9}) == pytest.approx(1.14)
    assert found.value({"own.queue": 1.0, "own.utilisation": 0.99}) == 1
    for values in ({"own.queue": math.nan, "own.utilisation": 1.0},
                   {"own.queue": 1.0, "own.utilisation": math.nan}):  # fmt: skip
        assert found.value(values) == math.inf
    assert Objective("abs(own.queue - 3) + min(own.queue, 5, 0.5)", names).value(
        {"own.queue": 1.0}
    ) == 2.5  # fmt: skip
    assert Objective("1 / own.queue", names).value({"own.queue": 0.0}) == math.inf
    for bad in ("own.queue > 1", "z.queue", "'a'", "sqrt(own.queue)", "max()"):
        with pytest.raises(ExpressionError):
            Objective(bad, names)


PLACE = {"rate": "5mbit", "rtt": "20ms"}
ROW: dict[str, Any] = {
    "id": "own", "scenario": {"duration": "1s", "path": PLACE, "flow": [{"cc": "{cc.name}"}]},
    "measure": [{"id": "queue", "title": "Q", "column": "path.utilisation"}],
}  # fmt: skip


def tuned(parameters: dict[str, Any], **more: Any) -> Any:
    return read_search(
        {"tune": {"cc": "cubic", "minimise": "own.queue"}, "parameters": parameters, "row": [ROW],
         **more}, "search",
    )  # fmt: skip


def test_a_parameter_is_a_place_in_its_range() -> None:
    (linear,) = tuned({"beta": {"from": 0.5, "to": 0.9}}).parameters
    assert float(linear.at(0)) == pytest.approx(0.5, abs=1e-3)
    assert float(linear.at(0.25)) == pytest.approx(0.6, abs=1e-3)
    assert linear.share("0.6") == pytest.approx(0.25) and linear.share("0.1") == 0
    assert linear.share("0.99") == 1
    (log,) = tuned({"beta": {"from": 0.1, "to": 0.9, "scale": "log"}}).parameters
    assert float(log.at(0.5)) == pytest.approx(0.3, abs=1e-3)
    assert log.share("0.3") == pytest.approx(0.5, abs=1e-3) and log.share("0.05") == 0
    for bad in ({"from": 0.9, "to": 0.9}, {"from": 0.9, "to": 0.5},
                {"from": 0.0, "to": 0.5, "scale": "log"}, {"from": 0.5, "to": 99.0}):  # fmt: skip
        with pytest.raises(UserError):
            tuned({"beta": bad})
    with pytest.raises(UserError, match="no such constant"):
        tuned({"zeta": {"from": 0, "to": 1}})
    with pytest.raises(UserError, match="1 to 20"):
        tuned({})


class MadeBench:
    """Measures settings by a function of beta."""

    def __init__(self, wanted: Any, value: Any) -> None:
        self.wanted, self.value = wanted, value
        self.failures: dict[str, str] = {}

    def measure(self, settings: Any) -> list[Result]:
        found = []
        for setting in settings:
            given = {**self.wanted.defaults, **setting}
            value = self.value(float(given["beta"]))
            found.append(Result(str(given["beta"]), value, {"own.queue": value}, {}))
        return found


def test_a_search_finds_the_least_and_what_a_change_is_worth() -> None:
    wanted = tuned(
        {"beta": {"from": 0.5, "to": 0.9, "off": 0.9}}, ablations={"half": {"beta": 0.5}}
    )
    bench: Any = MadeBench(wanted, lambda beta: abs(beta - 0.6))
    told: list[tuple[int, float]] = []
    found = search(wanted, bench, 20, lambda *one: told.append(one))
    assert found.best is not None and found.best.result.objective < 0.05
    assert found.default is not None and float(found.default.name) == pytest.approx(0.7, abs=1e-3)
    assert found.best.result.objective == min(one.result.objective for one in found.trials)
    assert len({one.result.name for one in found.trials}) == len(found.trials) == told[-1][0]
    assert told[-1][1] == found.best.result.objective and len(found.trials) >= 20
    kinds = {one.kind: float(one.setting["beta"]) for one in found.variants}
    best = float(found.best.setting["beta"])
    # A neighbour is a tenth of the range away: 0.04.
    assert kinds["lower"] == pytest.approx(best - 0.04, abs=2e-3)
    assert kinds["higher"] == pytest.approx(best + 0.04, abs=2e-3)
    assert kinds["off"] == pytest.approx(0.9, abs=1e-3)
    assert kinds["ablation"] == 0.5 and kinds["default"] == pytest.approx(0.7, abs=1e-3)


def test_a_constant_that_gains_nothing_goes_back_to_its_default() -> None:
    wanted = tuned({"beta": {"from": 0.5, "to": 0.9}})
    flat: Any = MadeBench(wanted, lambda beta: 1.0)
    found = search(wanted, flat, 10, lambda *_: None)
    assert found.best is not None and found.best.setting == {"beta": wanted.defaults["beta"]}
    assert "default" not in {one.kind for one in found.variants}
    nothing: Any = MadeBench(wanted, lambda beta: math.nan if beta < 2 else 1)
    nothing.value = lambda beta: math.inf
    with pytest.raises(UserError, match="has no value for any setting"):
        search(wanted, nothing, 10, lambda *_: None)


def test_a_setting_is_named_by_what_differs() -> None:
    wanted = tuned({"beta": {"from": 0.5, "to": 0.9}})
    store: Any = None
    bench = Bench(wanted, store)
    assert bench.name({}) == "cubic" and bench.name({"beta": "0.85"}) == "cubic[beta=0.85]"
    assert bench.name({"beta": wanted.defaults["beta"]}) == "cubic"


def base(rate: str = "10mbit", rtt: str = "40ms") -> Any:
    path = {"rate": rate, "rtt": rtt}
    return make_scenario({"duration": "10s", "path": path, "flow": [{"cc": "cubic"}]})


def test_runs_of_a_choice_last_as_long_as_their_packets_allow() -> None:
    # 24 million packets over 18 runs are 1.33 million each: 16.1 s at 1 Gbit/s.
    usual = ranking._length(base(), 0, 18)
    assert usual == Length(30, 5, 0, "")
    long = ranking._length(base(rtt="200ms"), 0, 18)
    assert (long.duration_s, long.warmup_s) == (60, 5)  # 300 round trips
    cut = ranking._length(base("1gbit"), 0, 18)
    assert (cut.duration_s, cut.warmup_s) == (16, pytest.approx(3.2))
    assert cut.cut == "each run lasts 16 s (400 RTTs) instead of 30 s"
    short = ranking._length(base("10gbit", "100ms"), 0, 18)
    assert short.duration_s == 1.6 and short.cut.endswith("start-up is much of what is seen")
    # A hundredth of 10 Mbit/s for 30 s are 375,000 B: 3.66 pages of 100 KiB.
    assert ranking._length(base(), 0.01, 18).pages == 4
    many = ranking._length(base("100mbit"), 0.5, 18)
    assert many.pages == 300 and "300 pages of" in many.cut and "1832 of 100 KiB" in many.cut


def test_the_scenario_of_a_choice_by_hand() -> None:
    path = Question("10mbit", "40ms", 0.1, "balance")
    found = ranking._document(path, "codel", "bbr3", Length(30, 5, 10, ""))
    assert (found["duration"], found["warmup"]) == ("30s", "5s")
    assert found["sample_interval"] == "100ms" and found["probe"][0]["interval"] == "33.3ms"
    bulk, page = found["flow"]
    assert (bulk["cc"], bulk["count"], page["count"]) == ("bbr3", 2, 10)
    # A tenth of 37.5 MB over ten pages; they begin over 95 % of the run.
    assert page["amount"] == "375000B" and page["start_step"] == "2850000us"
    short = ranking._document(path, "codel", "bbr3", Length(0.1, 0, 0, ""))
    assert short["sample_interval"] == "1ms" and len(short["flow"]) == 1


def measured(goal: Any, **more: Any) -> Option:
    summary = {"path": {"utilisation": 0.9}, "ping_ms": {"p95": 80.0}, "jain": 0.8,
               "goodput_bps": 9e6, "groups": [{}, {"completion_s": {"p95": 1.5}}]}  # fmt: skip
    found: Any = SimpleNamespace(metadata={"plan": {"duration_ns": 30 * 10**9}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "summarise", lambda _recording: {**summary, **more})
        return ranking._measure("codel", "bbr3", base(), found, goal)


def test_the_score_is_a_generalised_power() -> None:
    # Exponents of utilisation, of base RTT over ping, and of Jain's index.
    expected = {"balance": 0.9 * 0.5 * 0.8, "throughput": 0.9**4 * 0.5**0.5 * 0.8,
                "latency": 0.9 * 0.5**2 * 0.8, "fair": 0.9 * 0.5**0.5 * 0.8**4}  # fmt: skip
    assert {goal: measured(given).score for goal, given in GOALS.items()} == pytest.approx(expected)
    found = measured(GOALS["balance"])
    assert (found.added_p95_ms, found.ping_p95_ms, found.page_p95_s) == (40, 80, 1.5)
    # No answer counts as the run's length, an unknown index as that of one flow of two.
    lost = measured((1, 1, 1), ping_ms={"p95": None}, jain=None, groups=[{}])
    assert lost.score == pytest.approx(0.9 * 40 / 30_000 * 0.5) and lost.page_p95_s is None
    assert measured((1, 1, 1), ping_ms={"p95": 39.0}).score == pytest.approx(0.9 * 0.8)
    assert measured((1, 1, 1), ping_ms={"p95": 39.0}).added_p95_ms == 0


def test_a_rank_says_why_by_its_distance_from_the_best() -> None:
    def option(goodput: float, ping: float, jain: float, page: float | None = 1.0) -> Option:
        return Option("q", "c", goodput, 0.9, ping, 0.0, page, jain, 1.0, "")

    found = ranking._explained([
        option(100, 10, 1), option(95, 12, 0.95, 1.5), option(94.9, 12.1, 0.949, 1.51),
        option(50, 10, 1, None),
    ])  # fmt: skip
    assert [one.why for one in found] == [
        "near the best", "near the best", "5 % slower, waits +2.1 ms, uneven, pages x 1.5",
        "50 % slower",
    ]  # fmt: skip


def limits(**more: Any) -> Limits:
    usual = {"qdiscs": ("fifo",), "buffer_bdp": (0.5, 2), "rate_mbps": (1, 10), "rtt_ms": (10, 40),
             "loss": (0, 0.01), "jitter_ms": (0, 0), "flows": (1, 2),
             "algorithms": ("cubic", "bbr3")}  # fmt: skip
    return Limits(**{**usual, **more})


def facts(**more: Any) -> Facts:
    usual = {"qdisc": "fifo", "buffer_bdp": 1.0, "rate_mbps": 5.0, "rtts_ms": (20.0,), "loss": 0.0,
             "jitter_ms": 0.0, "flows": 2, "algorithms": frozenset({"cubic"})}  # fmt: skip
    return Facts(**{**usual, **more})


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        ({}, []), ({"rate_mbps": 1}, []), ({"rate_mbps": 10}, []),
        ({"rate_mbps": 10.1}, ["a rate outside 1 to 10 Mbit/s"]),
        ({"rate_mbps": 0.9}, ["a rate outside 1 to 10 Mbit/s"]),
        ({"rtts_ms": (10, 40)}, []), ({"rtts_ms": (20, 41)}, ["an RTT outside 10 to 40 ms"]),
        ({"loss": 0.011}, ["random loss outside 0 to 0.01"]),
        ({"jitter_ms": 0.1}, ["jitter other than 0 ms"]),
        ({"flows": 3}, ["a number of flows outside 1 to 2"]),
        ({"buffer_bdp": 2.1}, ["a buffer outside 0.5 to 2 BDP"]), ({"buffer_bdp": None}, []),
        ({"qdisc": "codel"}, ["qdisc codel"]),
        ({"algorithms": frozenset({"reno", "cubic"})}, ["algorithm reno"]),
        ({"flows": 3, "loss": 1}, ["random loss outside 0 to 0.01",
                                   "a number of flows outside 1 to 2"]),
    ],
)  # fmt: skip
def test_facts_are_within_limits_or_it_is_said_why(more: dict[str, Any], lacks: list[str]) -> None:
    assert limits().lacks(facts(**more)) == lacks


def scenario(**more: Any) -> Any:
    path = {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp", **more.pop("path", {})}
    return make_scenario({"path": path, "flow": [{"cc": "cubic"}], "duration": "10s", **more})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"path": {"ecn": True}}, "ECN"),
        ({"path": {"reverse_rate": "5mbit"}}, "traffic both ways"),
        ({"flow": [{"cc": "cubic", "direction": "down"}]}, "traffic both ways"),
        ({"flow": [{"cc": "cubic", "ecn": True}]}, "ECN"),
        ({"path": {"jitter": "1ms", "jitter_shape": "slotted"}}, "slotted jitter"),
        ({"path": {"reverse_loss": "1%"}}, "loss that is not of single data packets"),
        ({"path": {"loss": "1%", "loss_per": "burst"}}, "loss that is not of single data packets"),
        ({"udp": [{"rate": "1mbit"}]}, "other traffic than bulk flows"),
        ({"link": [{"name": "a", "rate": "5mbit"}, {"name": "b", "rate": "9mbit"}], "path": {}},
         "a row of links"),
    ],
)  # fmt: skip
def test_what_no_kernel_was_held_against_is_in_no_region(more: dict[str, Any], why: str) -> None:
    if "link" in more:
        found = make_scenario({"flow": [{"cc": "cubic"}], "duration": "10s", "link": more["link"]})
    else:
        found = scenario(**more)
    assert region_of(found) is None and beyond(found) == why


def test_a_plain_scenario_is_in_the_first_region_that_holds_it() -> None:
    found = region_of(scenario())
    assert found is not None and beyond(scenario()) == ""
    assert found == next(
        one for one in the_map().regions
        if not one.limits.lacks(facts(rate_mbps=10.0, rtts_ms=(40.0,), flows=1))
    )  # fmt: skip
    assert region_of(scenario(path={"rtt": "10s"})) is None
    assert "an RTT" in beyond(scenario(path={"rtt": "10s"}))


#: Knob -> range, default, value that leaves it out, and the round values that are tried.
RANGES: dict[str, tuple[float, float, float, float | None, tuple[float, ...]]] = {
    "rate_mbit": (5, 50, 10, None, (5, 10, 20, 50)),
    "rtt_ms": (20, 200, 40, None, (20, 40, 100, 200)),
    "buffer_bdp": (0.1, 16, 1, None, (0.1, 0.2, 0.5, 1, 2, 5, 10, 16)),
    "trace": (0, 0, 0, 0, (1, 2, 3, 4, 5)),
    "trace_s": (0.5, 10, 2, None, (0.5, 1, 2, 5, 10)),
    "trace_low": (0.05, 0.8, 0.5, None, (0.05, 0.1, 0.2, 0.5, 0.8)),
    "loss_percent": (0.01, 5, 0, 0, (0.01, 0.03, 0.1, 0.3, 1, 1.5, 2, 2.5, 3, 4, 5)),
    "jitter_ms": (0.5, 100, 0, 0, (0.5, 1, 2, 5, 10, 20, 50, 100)),
    "jitter_of_one_ms": (0.5, 100, 0, 0, (0.5, 1, 2, 5, 10, 20, 50, 100)),
    "rtt_ratio": (1.2, 8, 1, 1, (1.5, 2, 3, 4, 6, 8)),
}


def test_a_hunt_searches_these_ranges() -> None:
    shared = ["rate_mbit", "rtt_ms", "buffer_bdp", "trace", "trace_s", "trace_low"]
    assert {worst: [knob.name for knob in knobs] for worst, knobs in KNOBS.items()} == {
        "utilisation": [*shared, "loss_percent", "jitter_ms"],
        "starvation": [*shared, "loss_percent", "jitter_of_one_ms", "rtt_ratio"],
        "delay": [*shared, "loss_percent", "jitter_ms"], "loss": [*shared, "jitter_ms"],
    }  # fmt: skip
    for knob in {knob.name: knob for knobs in KNOBS.values() for knob in knobs}.values():
        assert (knob.low, knob.high, knob.usual, knob.off, knob.nice) == RANGES[knob.name]


def test_flows_without_jitter_say_nothing_of_it() -> None:
    assert document("cubic", "utilisation", PATH, None)["flow"] == [{"cc": "cubic"}]
    two = {knob.name: knob.usual for knob in KNOBS["starvation"]}
    assert document("x", "starvation", two, None)["flow"][0] == {"cc": "x", "name": "one"}


def test_a_profile_has_the_parts_of_what_is_needed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # A trace of steps is bad by how low it goes.
    hunt = made_hunt(
        "delay", lambda p: 9 * (1 - p["trace_low"]) * (p["trace"] == 1), monkeypatch
    )  # fmt: skip
    steps = {**PATH, "trace": 1.0, "trace_low": 0.05}
    found = hunt._finding(steps, KNOBS["delay"], [])
    assert found.needs == ("trace",) and set(found.profile) == {"trace", "trace_s", "trace_low"}
    lossy = made_hunt("delay", lambda p: 9 * (p["loss_percent"] > 0), monkeypatch)
    found = lossy._finding({**PATH, "loss_percent": 1.0}, KNOBS["delay"], [])
    assert set(found.profile) == {"loss_percent"}


def test_a_neighbour_at_the_very_end_of_a_range_is_tried() -> None:
    wanted = tuned({"beta": {"from": 0.5, "to": 0.9}})
    for least, kinds in ((0.86, {"lower", "higher"}), (0.9, {"lower"}), (0.5, {"higher"})):
        bench: Any = MadeBench(wanted, lambda beta, least=least: abs(beta - least))
        found = search(wanted, bench, 60, lambda *_: None)
        assert found.best is not None
        best = float(found.best.setting["beta"])
        seen = {one.kind for one in found.variants} - {"default"}
        if best == pytest.approx(least, abs=1e-9):
            assert seen == kinds


def test_ablations_and_options_are_checked() -> None:
    parameters = {"beta": {"from": 0.5, "to": 0.9}}
    for bad in ({"half": 3}, {"half": {}}, {"half": {"zeta": 1}}, {"half": {"beta": 99}}):
        with pytest.raises(UserError, match=r"ablations\.half"):
            tuned(parameters, ablations=bad)
    usual = tuned(parameters).options
    assert (usual.seed, usual.held_out_seed, usual.trials, usual.against) == (1, 2, 200, [])
    for key, bad_value in (("seed", -1), ("seed", 2**32), ("trials", 0), ("trials", 100_001)):
        with pytest.raises(UserError, match=rf"tune\.{key}"):
            tuned(parameters, tune={"cc": "cubic", "minimise": "own.queue", key: bad_value})
    most = {"cc": "cubic", "minimise": "own.queue", "seed": 2**32 - 1, "trials": 100_000}
    assert tuned(parameters, tune=most).options.seed == 2**32 - 1


def test_held_out_runs_have_other_seeds_and_draw_other_paths() -> None:
    parameters = {"beta": {"from": 0.5, "to": 0.9}}
    drawn = {**ROW, "scenario": {**ROW["scenario"], "path": {"rate": "{rate}", "rtt": "20ms"}},
             "axis": {"rate": {"from": "5mbit", "to": "9mbit", "count": 2}},
             "sweep": {"sample": {"kind": "sobol", "cells": 4, "seed": 1}}}  # fmt: skip
    for row in (ROW, drawn):
        wanted = read_search({"tune": {"cc": "cubic", "minimise": "own.queue"},
                              "parameters": parameters, "row": [row]}, "search")  # fmt: skip
        store: Any = None
        training, other = Bench(wanted, store), Bench(wanted, store, held_out=True)
        one, two = (bench._sweep(wanted.rows[0], "cubic") for bench in (training, other))
        # Seeds from (2 + 1) x 1000 on.
        assert two.document["scenario"]["seed"] in (3000, "3000")
        assert "seed" not in one.document["scenario"]
        if row is drawn:
            assert one.document["sweep"]["sample"]["seed"] == 1
            assert two.document["sweep"]["sample"]["seed"] == 2


def test_a_result_has_means_intervals_and_shares_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**ROW, "share": {"full": "queue >= 0.5"}}
    wanted = read_search({"tune": {"cc": "cubic", "minimise": "own.queue - own.full"},
                          "parameters": {"beta": {"from": 0.5, "to": 0.9}}, "row": [row]},
                         "search")  # fmt: skip
    values = [[0.4, 0.6], [0.2, 0.4], [math.nan, 0.9], [math.nan, math.nan]]
    ran = SimpleNamespace(interrupted=False, failures={}, cells=[[SimpleNamespace(keys=["k"])]])
    monkeypatch.setattr(settings, "run_together", lambda *_: ran)
    monkeypatch.setattr(settings, "rows_of", lambda *_: None)
    monkeypatch.setattr(settings, "values_of", lambda *_: values)
    store: Any = None
    (found,) = Bench(wanted, store).measure([{"beta": "0.8"}])
    # Means of cells 0.5, 0.3 and 0.9, and one that was not measured: two of four meet it.
    assert found.name == "cubic[beta=0.8]" and found.values["own.full"] == 0.5
    assert found.values["own.queue"] == pytest.approx(0.5)
    assert found.intervals["own.full"] == pytest.approx(wilson(2, 4))
    low, high = found.intervals["own.queue"]
    assert low < 0.5 < high and found.objective == pytest.approx(0)
    ran.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        Bench(wanted, store).measure([{}])


def test_the_files_of_a_search(tmp_path: Path) -> None:
    wanted = tuned({"beta": {"from": 0.5, "to": 0.9, "scale": "log"}})
    best = Result(
        "cubic[beta=0.8]", 0.123456789, {"own.queue": math.nan}, {"own.queue": (1.0, 2.0)}
    )
    trial = Trial({"beta": "0.8"}, best)
    made = document_of(wanted, Found([trial], trial, best, [Variant("beta", "off", {}, best)]))
    assert made["parameters"]["beta"] == {
        "from": 0.5, "to": 0.9, "scale": "log", "default": wanted.defaults["beta"],
        "unit": "of cwnd",
    }  # fmt: skip
    assert made["best"]["objective"] == 0.123457 and made["best"]["values"] == {"own.queue": None}
    assert made["best"]["intervals"] == {"own.queue": [1, 2]}
    assert made["variants"][0]["change"] == "beta" and len(made["trials"]) == 1
    with pytest.raises(UserError, match="holds no search yet"):
        read_best(tmp_path, wanted)
    write_search(made, tmp_path)
    assert read_best(tmp_path, wanted) == {"beta": "0.8"}
    with pytest.raises(UserError, match="is of another search"):
        read_best(tmp_path, tuned({"scale": {"from": 2, "to": 5}}))


def test_held_out_paths_are_looked_at_for_one_setting(tmp_path: Path) -> None:
    wanted = tuned({"beta": {"from": 0.5, "to": 0.9}})
    assert looked_at(tmp_path, wanted, {"beta": "0.8"}) is None
    written = write_held_out(tmp_path, wanted, {"beta": "0.8"}, [])
    assert looked_at(tmp_path, wanted, {"beta": "0.8"}) == written
    with pytest.raises(UserError, match="no longer held out"):
        looked_at(tmp_path, wanted, {"beta": "0.7"})
    other = tuned({"beta": {"from": 0.5, "to": 0.9}},
                  tune={"cc": "cubic", "minimise": "own.queue", "held_out_seed": 3})  # fmt: skip
    assert looked_at(tmp_path, other, {"beta": "0.7"}) is None


def test_a_failed_pair_fails_the_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(failures=["why"], recordings=[None])
    monkeypatch.setattr(ranking, "execute", lambda *_: failed)
    with pytest.raises(RunError, match="why"):
        ranking._run_all([base()], [{}], tmp_path, lambda _share: None, 1)
    with pytest.raises(UserError, match="--for speed"):
        ranking.choose(Question("10mbit", "40ms", 0, "speed"), tmp_path)


def test_the_trade_offs_are_drawn_over_a_logarithmic_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(figure, "write", lambda plot, _path: drawn.append(plot) or [])
    options = [Option(queue, "cubic", 9e6, 0.9, 50.0, added, None, 1.0, 1.0, "")
               for queue, added in (("pie", 0.01), ("codel", 20.0), ("pie", 5.0), ("fifo", 1.0),
                                    ("red", 1.0), ("cake", 1.0))]  # fmt: skip
    figure.write_tradeoffs(options, tmp_path, "t")
    (plot,) = drawn
    assert [float(one.x[0]) for one in plot.traces] == [0.1, 20, 5, 1, 1, 1]
    assert {float(one.y[0]) for one in plot.traces} == {9.0}
    assert (plot.log_x, plot.zero) == (10, False)
    assert [text for *_, text in plot.labels] == ["1", "2", "3", "4", "5"]
    marks = [one.mark for one in plot.traces]
    assert marks[0] == marks[2] and len(set(marks)) == 5


def test_a_reader_is_told_how_far_the_simulator_may_be_from_a_kernel() -> None:
    flows = [{"cc": "cubic", "count": 2}]
    region = region_of(scenario(flow=flows))
    assert region is not None
    text = sentence(scenario(flow=flows))
    assert text.startswith(f"In this region ({region.name}; {region.cells} cells) the means of ")
    # Shares and queues as they are, ratios in percent; the second number is that of nine in ten.
    shown = {"share": (1, 3, " in share"), "queue_rttmin": (1, 2, " RTTmin in median queue"),
             "utilisation": (100, 1, " % in utilisation"), "loss": (100, 1, " % in loss"),
             "retransmissions": (100, 1, " % in packets sent again")}  # fmt: skip
    first, _, bounds = text.partition(" on average, chance included")
    for metric, one in region.differences.items():
        factor, digits, unit = shown[metric]
        assert f"{factor * one.mean:.{digits}f}{unit}" in first
        is_known = one.nine_in_ten is not None
        assert (unit in bounds) == is_known
        if one.nine_in_ten is not None:
            assert f"{factor * one.nine_in_ten:.{digits}f}{unit}" in bounds
    # One flow has no share to compare.
    assert " in share" in text and " in share" not in sentence(scenario())
    away = sentence(scenario(path={"rtt": "10s"}))
    assert away == f"Not held against a kernel: {beyond(scenario(path={'rtt': '10s'}))}."


def test_one_flow_that_is_unlike_is_enough() -> None:
    pairs: dict[str, dict[str, Any]] = {
        "ECN": {"ecn": True}, "traffic both ways": {"direction": "down"},
        "slotted jitter": {"jitter": "1ms", "jitter_shape": "slotted"},
    }  # fmt: skip
    for why, own in pairs.items():
        assert beyond(scenario(flow=[{"cc": "cubic"}, {"cc": "cubic", **own}])) == why
    assert beyond(scenario(path={"loss": "1%", "loss_marks": True, "ecn": True})) == "ECN"
    aqm = {"qdisc": "codel", "buffer": "7pkt"}
    assert beyond(scenario(path=aqm)) == "a limit of codel of its own"
    assert "codel" not in beyond(make_scenario(
        {"path": {"rate": "10mbit", "rtt": "40ms", "qdisc": "codel"}, "duration": "10s",
         "flow": [{"cc": "cubic"}]}))  # fmt: skip
    links = [{"name": "a", "rate": "10mbit", "delay": "20ms"}]
    for key, changed in (("rate_steps", [["1s", "5mbit"]]), ("outage", [["1s", "1s"]])):
        found = make_scenario({"duration": "10s", "flow": [{"cc": "cubic"}],
                               "link": [{**links[0], key: changed}]})  # fmt: skip
        assert beyond(found) == "a link that changes"


def test_the_least_missed_region_says_why() -> None:
    # A rate and a round trip that no region has: the region that misses by fewest limits.
    far = beyond(scenario(path={"rtt": "10s", "rate": "900gbit"}))
    assert "an RTT" in far and "a rate" in far and " and " in far
    jitter = scenario(path={"jitter": "1ms"}, flow=[{"cc": "cubic", "jitter": "900ms"}])
    assert "jitter" in beyond(jitter)
    assert "random loss" in beyond(scenario(path={"loss": "40%"}))
    many = scenario(flow=[{"cc": "cubic", "count": 900}])
    assert "a number of flows" in beyond(many)
    assert "a buffer" in beyond(scenario(path={"buffer": "900bdp"}))


def test_nothing_that_was_measured_is_no_goodput() -> None:
    lost = measured((1, 1, 1), goodput_bps=None, path={"utilisation": None})
    assert (lost.goodput_bps, lost.utilisation, lost.score) == (0, 0, 0)
