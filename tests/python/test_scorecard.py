"""The scorecard tells what is wrong with algorithms that are wrong on purpose, and what changed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fullpipe import cli
from fullpipe.authoring.new import write_new
from fullpipe.metrics.harm import harm
from fullpipe.scorecard.beside_others import beside_others
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.card_page import card_page
from fullpipe.scorecard.items import Item, Measure, items
from fullpipe.sweep.query import ask
from fullpipe.sweep.store import Store

#: Loss leaves the whole window: it never backs off.
_GREEDY = ("ctl->ssthresh = cc_max_u32((u32)((u64)ctl->cwnd * p->beta / CC_ONE), 2);",
           "ctl->ssthresh = ctl->cwnd;")  # fmt: skip
#: Once a queue shows in the RTT, half of what filled the pipe is its window for ever.
_TIMID = [
    ("u32 prior_cwnd; /* packets, before the last reduction */",
     "u32 prior_cwnd;\n\tu32 min_rtt_us;\n\tu32 half; /* of the BDP, once it is known */"),
    ("#define timid_FLAGS 0", "#define timid_FLAGS CC_WANTS_RTT"),
    ("if (!conn->is_cwnd_limited)", "if (s->half) {\n\t\tctl->cwnd = s->half;\n\t\treturn;\n\t}\n"
     "\tif (!conn->is_cwnd_limited)"),
    ("if (event->kind == CC_EVENT_SSTHRESH) {",
     "if (event->kind == CC_EVENT_RTT && event->value) {\n"
     "\t\tif (!s->min_rtt_us || event->value < s->min_rtt_us)\n"
     "\t\t\ts->min_rtt_us = event->value;\n"
     "\t\tif (!s->half && event->value > s->min_rtt_us + s->min_rtt_us / 4)\n"
     "\t\t\ts->half = cc_max_u32((u32)((u64)ctl->cwnd * s->min_rtt_us /\n"
     "\t\t\t\t\t\t    (2 * (u64)event->value)), 2);\n"
     "\t} else if (event->kind == CC_EVENT_SSTHRESH) {"),
]  # fmt: skip


def _edited(folder: Path, name: str, edits: list[tuple[str, str]]) -> str:
    """A file of `cc new` with changes."""
    place = write_new(name, None, folder)
    text = place.read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    place.write_text(text)
    return str(place)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("scorecard") / "store", create=True)


def _card(store: Store, subject: str, *wanted: str, against: str = "cubic,reno") -> dict[str, Any]:
    chosen = [item for item in items() if item.id.removeprefix("rfc9743-") in wanted]
    assert len(chosen) == len(wanted)
    return run_card(subject, against.split(","), chosen, store, quick=True, jobs=2)


def _standings(card: dict[str, Any]) -> dict[str, str]:
    return {
        f"{item['id'].removeprefix('rfc9743-')} {measure['id']}": beside_others(
            measure, card["scorecard"]
        )
        for item in card["items"]
        for measure in item["measures"]
    }


@pytest.mark.slow
def test_an_algorithm_that_never_backs_off_falls_out_where_loss_and_others_count(
    store: Store, tmp_path: Path
) -> None:
    greedy = _edited(tmp_path, "greedy", [_GREEDY])
    found = _standings(_card(store, greedy, "5.1.1-overload", "5.1.3", "5.2.3-short"))
    assert found["5.1.1-overload loss"] == "worse"
    assert found["5.1.3 loss"] == "worse"
    assert found["5.2.3-short harm"] == "worse"
    assert found["5.1.3 utilisation"] != "worse"


@pytest.mark.slow
def test_an_algorithm_of_half_a_bdp_falls_out_where_utilisation_counts(
    store: Store, tmp_path: Path
) -> None:
    timid = _edited(tmp_path, "timid", _TIMID)
    found = _standings(_card(store, timid, "5.1.2", "5.1.3", "5.2.3-short"))
    assert found["5.1.2 utilisation"] == "worse"
    assert found["5.1.3 utilisation"] == "worse"
    assert found["5.1.2 delay"] == "better"
    assert found["5.2.3-short harm"] == "better"


def test_the_page_holds_every_figure_with_its_command_and_loads_nothing(store: Store) -> None:
    card = _card(store, "cubic", "5.1.3", "6.2", against="reno")
    text = card_page(card)
    assert "fullpipe scorecard cubic --only rfc9743-5.1.3 --quick" in text
    assert "needs a tunnel" in text
    assert "<svg" in text
    assert "src=" not in text and "<script" not in text and "http" not in text


def test_a_page_has_an_overview_of_several_items_and_no_empty_section(store: Store) -> None:
    one = card_page(_card(store, "cubic", "5.1.3", against="reno"))
    assert "Overview" not in one and "<polyline" not in one and "Not run" not in one
    two = card_page(_card(store, "cubic", "5.1.2", "5.1.3", against="reno"))
    lines = re.findall(r'<polyline points="([^"]*)"', two)
    assert "Overview" in two and [len(line.split()) for line in lines] == [2, 2]


def test_every_item_of_rfc_9743_is_there_and_has_a_measure_or_a_reason() -> None:
    found = items()
    sections = {item.source.removeprefix("RFC 9743 section ") for item in found}
    wanted = (
        "5.1.1 5.1.2 5.1.3 5.1.4 5.1.5 5.2.1 5.2.2 5.2.3 6.1 6.2 6.4 7.1 7.2 7.3 7.4 7.5 7.6 7.7 "
        "7.8 7.9 7.10 7.11"
    )
    assert set(wanted.split()) <= sections
    assert all(bool(item.measure) != bool(item.needs) for item in found)
    assert len(list(next(i for i in found if i.id == "robustness").runs("reno", False, "sim")
                    .points())) >= 1000  # fmt: skip


def test_harm_is_that_of_ware_et_al() -> None:
    assert harm(10, 4, "more") == pytest.approx(0.6)
    assert harm(20, 50, "less") == pytest.approx(0.6)
    assert harm(10, 10, "more") == 0
    assert harm(2, float("inf"), "less") == 1


def test_an_item_that_had_not_settled_says_so_and_goes_on_for_all_subjects(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tutorial's contest at a lower rate: above 0.55 for CUBIC in the first 30 s, below 0.52
    later. Reno, alone on its own queue, would need no longer runs, but is compared with it."""
    contest = Item(
        id="contest", source="here", title="A contest", sweep={"seeds": 4},
        scenario={
            "duration": "30s", "warmup": "5s",
            "path": {"rate": "8mbit", "rtt": "40ms", "buffer": "{buffer}"},
            "flow": [{"name": "subject", "cc": "{cc.name}"}, {"cc": "bbr3"}],
        },
        axis={"buffer": ["4bdp", "0.2bdp"]},
        measure=[Measure(id="share", title="its share", column="flows.share", group="subject")],
    )  # fmt: skip
    monkeypatch.setattr("fullpipe.scorecard.items.items", lambda: [contest])
    words = ["fullpipe", "scorecard", "cubic", "--against", "reno", "--only", "contest",
             "--store", str(store.folder)]  # fmt: skip
    drift = "not settled in "
    said = {}
    for more in ([], ["--json"], ["--json", "--until-settled"]):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        said[len(more)] = capsys.readouterr().out
    assert f"contest: {drift}" in said[0]
    [short], [long] = (json.loads(said[count])["items"] for count in (1, 2))
    assert any("cubic" in cell and "4bdp" in cell for cell in short["unsettled"])
    page = card_page(json.loads(said[1]))
    assert drift.capitalize() in page and 'class="worse"' in page
    [before], [after] = short["measures"], long["measures"]
    cubic = [one["subjects"]["cubic"]["values"][0] for one in (before, after)]
    assert min(cubic[0]) > 0.55 and max(cubic[1]) < 0.52
    assert not any("4bdp" in cell for cell in long["unsettled"])
    assert long["command"].endswith("--until-settled")
    durations = {
        (row["buffer"], row["duration_until_settled"])
        for row in ask(
            store, "select distinct buffer, duration_until_settled, cc from runs", "contest"
        ).to_pylist()
        if row["buffer"] == "4bdp"
    }
    assert len(durations) == 1, "both subjects ran as long"


def test_a_cell_of_an_item_is_a_scenario_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fullpipe", "scorecard", "reno", "--only", "rfc9743-5.1.3", "--cell", "2"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    from fullpipe.scenario.model import load_scenario

    (tmp_path / "cell.toml").write_text(capsys.readouterr().out)
    scenario = load_scenario(tmp_path / "cell.toml")
    assert scenario.flow[0].cc == "reno"
    assert scenario.path.buffer is not None
