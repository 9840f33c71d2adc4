"""What a comparison of scorecards refuses before it runs anything, and which seeds it counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.scorecard import comparing
from fullpipe.scorecard.comparing import Settings, run_against
from fullpipe.scorecard.items import Item
from fullpipe.sweep.store import Store
from test_scorecard_by_hand import card, item

SCENARIO = {"duration": "1s", "path": {"rate": "5mbit", "rtt": "20ms"},
            "flow": [{"cc": "{cc.name}", "count": "{cc.n}"}]}  # fmt: skip


class RanError(Exception):
    """Something would have run."""


def asked(seeds: int | None, **more: Any) -> Item:
    """An item with two judged measures."""
    return item(scenario=SCENARIO, sweep={} if seeds is None else {"seeds": seeds}, **more)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def run(*_: Any, **__: Any) -> None:
        raise RanError

    def against(items: Sequence[Item], **settings: Any) -> None:
        store = Store(tmp_path / "store", create=True)
        run_against("cubic", "reno", items, store, Settings(**settings))

    monkeypatch.setattr(comparing, "run_card", run)
    return against


@pytest.mark.parametrize(
    ("items", "settings"),
    [
        ([asked(6)], {}),
        ([asked(None)], {}),  # ten
        ([asked(6), asked(10)], {}),
        ([asked(2), asked(10)], {}),  # the item with most seeds can tell a change
        ([asked(2)], {"seeds": 6}),
        ([asked(2, needs="something")], {}),  # nothing runs, and nothing is compared
    ],
)
def test_items_with_seeds_enough_are_run(
    compared: Any, items: list[Item], settings: dict[str, Any]
) -> None:
    """Of 2n runs the least p of a permutation test is 2 over the number of choices of n: 1/126 for
    five each, 1/462 for six. Two tests at 1 % need 0.5 %, and four 0.25 %."""
    with pytest.raises(RanError):
        compared(items, **settings)


@pytest.mark.parametrize(
    ("items", "settings", "seeds", "needed"),
    [
        ([asked(5)], {}, 5, 6),
        ([asked(5), asked(2)], {}, 5, 6),
        ([asked(6)], {"seeds": 5}, 5, 6),
        ([asked(6, quick={"seeds": 3})], {"quick": True}, 3, 6),
        ([asked(5), asked(10, needs="something")], {}, 5, 6),  # that one does not run
    ],
)
def test_items_with_too_few_seeds_are_refused_before_anything_runs(
    compared: Any, items: list[Item], settings: dict[str, Any], seeds: int, needed: int
) -> None:
    with pytest.raises(UserError, match=f"^{seeds} seeds .* {needed} each are needed"):
        compared(items, **settings)


@pytest.mark.parametrize(("before", "now"), [(5, 5), (2, 10), (10, 2)])
def test_an_earlier_card_is_refused_for_the_seeds_of_either_side(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int, now: int
) -> None:
    """Of 2 and 10 runs there are 66 choices of two."""

    def made(seeds: int) -> dict[str, Any]:
        return card({"cubic": [[1.0 + n / 100 for n in range(seeds)]]})

    cards = [made(before), made(now)]
    (tmp_path / "scorecard.json").write_text(json.dumps(cards[0]))
    monkeypatch.setattr(comparing, "run_card", lambda *_, **__: cards[1])
    store = Store(tmp_path / "store", create=True)
    said = f"^{before} seeds of the baseline and {now} of the subject"
    with pytest.raises(UserError, match=said):
        run_against("cubic", str(tmp_path), [asked(5)], store, Settings())
    cards[1] = made(10)
    (tmp_path / "scorecard.json").write_text(json.dumps(cards[1]))
    run_against("cubic", str(tmp_path), [asked(5)], store, Settings())
