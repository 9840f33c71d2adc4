"""A comparison as Markdown, for a comment on a pull request. Names and reasons come from users'
files, so they are escaped. Must never judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.scorecard.change_texts import conclusion, figures, what_was_tested, worsening
from fullpipe.scorecard.changes import Change, Comparison
from fullpipe.scorecard.gate import Judged

#: GitHub refuses comments of more than 65,536 characters.
MAX_CHARACTERS = 60_000
MAX_FAILURES = 20
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~:&])")
#: Where GitHub would read a mention; `mine@1a7a54ecd4` is none.
_MENTION = re.compile(r"(?<!\w)@")


def markdown(card: Mapping[str, Any], comparison: Comparison, judged: Judged) -> str:
    """The text: the outcome, what got worse, what is accepted, what got better, everything."""
    failed = judged.is_worse or bool(card["failures"])
    lines = [f"### fullpipe: {'worse' if failed else 'not worse'}", ""]
    lines += [_escaped(conclusion(comparison, judged)) + ".", ""]
    lines += [f"- holds: {_escaped(text)}" for text in judged.holding]
    lines += [f"- failed: {_escaped(text)}" for text in card["failures"][:MAX_FAILURES]]
    if len(card["failures"]) > MAX_FAILURES:
        lines.append(f"- and {len(card['failures']) - MAX_FAILURES} more runs failed")
    lines += [
        f"- {_escaped(item['id'])}: {_escaped(item['settling'])}"
        for item in card["items"]
        if item.get("settling")
    ]
    worse = [change for change in comparison.of("worse") if change not in dict(judged.accepted)]
    lines += _section("Worse", comparison, worse)
    lines += _section("Better", comparison, comparison.of("better"))
    if judged.accepted:
        lines += ["", "**Worse, and accepted**", ""]
        lines += ["| measure | worse by | reason |", "|---|---:|---|"]
        lines += [
            f"| {_escaped(change.id)} | {worsening(change)} | {_escaped(why)} |"
            for change, why in judged.accepted
        ]
    for entry in judged.unused:
        about = f"{entry.item}.{entry.measure}" if entry.measure else entry.item
        lines.append(f"\nThe allow-list names {_escaped(about)}, which is not worse.")
    same = comparison.of("same")
    lines += ["", "<details><summary>What did not change</summary>", *_table(comparison, same)]
    lines += [
        f"- not tested: {_escaped(f'{name}: {why}')}" for name, why in comparison.untested.items()
    ]
    lines += ["", "</details>", "", what_was_tested(comparison), ""]
    text = "\n".join(lines)
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[:MAX_CHARACTERS] + "\n\nCut here; the rest is in scorecard.json.\n"


def _section(title: str, comparison: Comparison, changes: Sequence[Change]) -> list[str]:
    return ["", f"**{title}**", *_table(comparison, changes)] if changes else []


def _table(comparison: Comparison, changes: Sequence[Change]) -> list[str]:
    names = " | ".join(_escaped(name) for name in (comparison.baseline, comparison.subject))
    lines = ["", f"| measure | | {names} | worse by |", "|---|---|---:|---:|---:|"]
    lines += [
        f"| {_escaped(change.id)} | {_escaped(change.title)} | {' | '.join(figures(change))} | "
        f"{worsening(change)} |"
        for change in changes
    ]
    return [*lines, ""]


def _escaped(text: str) -> str:
    """One line in which nothing is markup, a mention or a link."""
    return _MENTION.sub("@\u200b", _SPECIAL.sub(r"\\\1", " ".join(text.split())))
