"""Scorecards as Markdown for the documentation: one page for each congestion control, and a
comparison of all. Must never run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.base.markdown import filled
from fullpipe.scorecard.beside_others import beside_others
from fullpipe.scorecard.change_texts import shown


def comparison(card: Mapping[str, Any], commit: str) -> str:
    """A table of all subjects of a scorecard, a row a measure. `commit`: what was measured."""
    names = card["subjects"]
    lines = [
        "# Scorecards of the built-in congestion controls",
        "",
        filled(
            f"Made by `scripts/scorecards.py{' --quick' if card['quick'] else ''}`, fullpipe "
            f"{card['fullpipe_version']} of commit {commit}, engine {card['engine']}, "
            f"{card['runs']} runs. What each row is: "
            "[scorecard.md](../../reference/scorecard.md) and `scorecard/`. Means over cells and "
            "seeds, or the worst where it says so; `never`: a download did not end."
        ),
        "",
        f"| item | measure | {' | '.join(f'[{name}]({name}.md)' for name in names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for item in card["items"]:
        for index, measure in enumerate(item["measures"]):
            cells = [shown(measure["subjects"][name]["value"]) for name in names]
            name = "" if index else item["id"].removeprefix("rfc9743-")
            lines.append(f"| {name} | {_titled(measure)} | {' | '.join(cells)} |")
    lines += ["", "Not run:", ""]
    lines += [
        filled(f"- {item['source']}, {item['title'].lower()}: needs {item['not_run']}")
        for item in card["items"]
        if item["not_run"]
    ]
    return "\n".join(lines) + "\n"


def own_page(card: Mapping[str, Any], draft: Sequence[Mapping[str, Any]]) -> str:
    """The measures in which one subject is better or worse than all others, and its worst cells."""
    name = card["scorecard"]
    lines = [f"# Scorecard: {name}", ""]
    for word, title in (("worse", "Worse"), ("better", "Better")):
        rows = [
            f"| {item['title']} ({item['source']}) | {_titled(measure)} | "
            f"{shown(measure['subjects'][name]['value'])} | {_of_others(measure, name)} | "
            f"`fullpipe scorecard {name} --only {item['id']}` |"
            for item in card["items"]
            for measure in item["measures"]
            if beside_others(measure, name) == word
        ]
        lines += [f"## {title} than all others by more than a tenth", ""]
        lines += (
            ["| item | measure | here | others | command |", "|---|---|---|---|---|", *rows, ""]
            if rows
            else ["Nowhere.", ""]
        )
    lines += ["## Worst cells", "", "| item | measure | worst | where |", "|---|---|---|---|"]
    for item in card["items"]:
        if item["measures"] and len(item["cells"]) > 1:
            measure = item["measures"][0]
            interval = measure["subjects"][name]
            lines.append(
                f"| {item['id']} | {measure['title']} | {shown(interval['worst'])} | "
                f"{item['cells'][interval['worst_cell']]} |"
            )
    if any(case["holds"] is not None for case in draft):
        held = [case for case in draft if case["holds"]]
        lines += ["", "## The draft's example test cases", "", f"{len(held)} of 22 hold.", ""]
        for case in draft:
            if case["holds"] is False:
                fails = case["measured"]["fails"]
                texts = "; ".join(f"{path}: {', '.join(why)}" for path, why in fails.items())
                lines.append(filled(f"- {case['id']}, {case['title']}: {texts}"))
            elif case["holds"] is None:
                lines.append(filled(f"- {case['id']} was not run: {case['measured']['why']}"))
    return "\n".join(lines) + "\n"


def _titled(measure: Mapping[str, Any]) -> str:
    return f"{measure['title']}, {measure['unit']}" if measure["unit"] else str(measure["title"])


def _of_others(measure: Mapping[str, Any], subject: str) -> str:
    """The range of the others."""
    texts = [
        f"{name} {shown(interval['value'])}"
        for name, interval in measure["subjects"].items()
        if name != subject
    ]
    return ", ".join(texts)
