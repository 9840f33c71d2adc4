"""What a comparison must not show: conditions of `--fail-if`, and the list of accepted changes.

Conditions see only changes that were told from chance; everything else is 0 to them. Must never
test anything itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from fullpipe.base.errors import UserError
from fullpipe.base.model_files import read_model
from fullpipe.expr.conditions import Condition
from fullpipe.expr.language import ExpressionError
from fullpipe.scorecard.changes import Change, Comparison
from fullpipe.scorecard.items import Item

#: In a condition: any item.
ANY = "item"
_HINT = (
    "compare the worsening of item (of any), an item such as rfc9743-5.1.3, a measure such as "
    "utilisation, or rfc9743-5.1.3.utilisation with a share: 'item > 5%'"
)
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class Accepted(BaseModel):
    """One entry of an allow-list: an item, or one of its measures, whose worsening is accepted, and
    why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    item: _Text
    measure: _Text | None = None
    reason: _Text

    def covers(self, change: Change) -> bool:
        """Whether it is about this change."""
        return change.item == self.item and self.measure in (None, change.measure)


class AllowList(BaseModel):
    """The file: `[[allow]]` with item, measure and reason."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: list[Accepted] = []


@dataclass(frozen=True)
class Judged:
    """The outcome. `failing`: the worsenings that are not accepted, where no condition was given.
    `accepted`: those that are, with the reason. `holding`: conditions that hold. `unused`: entries
    of the allow-list that no worsening needed."""

    failing: tuple[Change, ...]
    accepted: tuple[tuple[Change, str], ...]
    conditions: tuple[str, ...]
    holding: tuple[str, ...]
    unused: tuple[Accepted, ...]

    @property
    def is_worse(self) -> bool:
        """Whether the gate is shut."""
        return bool(self.failing or self.holding)


class Gate:
    """Conditions and accepted changes for these items. Raises UserError for a condition that cannot
    be read or names something unknown, and for an entry about an unknown item or measure."""

    def __init__(
        self, items: Sequence[Item], conditions: Sequence[str] = (), allow: Path | None = None
    ) -> None:
        self._ids = {item.id: [m.id for m in item.measure if m.better] for item in items}
        self._conditions = [self._condition(text) for text in conditions]
        self._accepted = read_model(AllowList, allow).allow if allow is not None else []
        for entry in self._accepted:
            measures = self._ids.get(entry.item)
            if measures is None:
                raise UserError(f"{allow}: item {entry.item!r} is unknown or not in this card")
            if entry.measure is not None and entry.measure not in measures:
                raise UserError(
                    f"{allow}: {entry.item} has no measure {entry.measure!r}; it has "
                    f"{', '.join(measures)}"
                )

    def judge(self, comparison: Comparison) -> Judged:
        """What of a comparison counts."""
        worse = comparison.of("worse")
        why = {
            change: next((e.reason for e in self._accepted if e.covers(change)), None)
            for change in worse
        }
        counting = [change for change in worse if why[change] is None]
        names = self._names(counting)
        holding = [condition.text for condition in self._conditions if condition.holds(names)]
        unused = [e for e in self._accepted if not any(e.covers(change) for change in worse)]
        return Judged(
            failing=() if self._conditions else tuple(counting),
            accepted=tuple((change, text) for change, text in why.items() if text is not None),
            conditions=tuple(condition.text for condition in self._conditions),
            holding=tuple(holding),
            unused=tuple(unused),
        )

    def _condition(self, text: str) -> _Condition:
        names = self._names(())
        try:
            condition = _Condition(text, self._ids)
            if not condition.names:
                raise UserError(f"--fail-if {text!r}: names nothing; {_HINT}")
            unknown = sorted(condition.names - set(names))
            if unknown:
                raise UserError(f"--fail-if {text!r}: {unknown[0]} is unknown; {_HINT}")
            condition.holds(names)
        except ExpressionError as error:
            raise UserError(f"--fail-if {text!r}: {error}; {_HINT}") from None
        return condition

    def _names(self, worse: Sequence[Change]) -> dict[str, float]:
        """The largest worsening of any item, of each item, of each kind of measure, and of each
        item's measures."""
        worse_by = {ANY: 0.0}
        for item, measures in self._ids.items():
            worse_by[_identifier(item)] = 0.0
            for measure in measures:
                worse_by[measure] = worse_by[f"{_identifier(item)}.{measure}"] = 0.0
        for change in worse:
            item = _identifier(change.item)
            for name in (ANY, item, change.measure, f"{item}.{change.measure}"):
                worse_by[name] = max(worse_by[name], change.worse_by)
        return worse_by


class _Condition:
    """A condition over items, whose ids are no names of the expression language: they hold dots and
    dashes. In the text they stand as identifiers."""

    def __init__(self, text: str, ids: Mapping[str, Sequence[str]]) -> None:
        self.text = text
        longest_first = sorted(ids, key=len, reverse=True)
        names = "|".join(re.escape(item) for item in longest_first)
        pattern = re.compile(rf"(?<![\w.-])({names})(?![\w-]|\.\d)")
        spelled = pattern.sub(lambda match: _identifier(match[1]), text) if ids else text
        self._condition = Condition(spelled, "item or measure")

    @property
    def names(self) -> set[str]:
        return self._condition.full_names

    def holds(self, names: Mapping[str, float]) -> bool:
        return self._condition.holds(names)


def _identifier(item: str) -> str:
    return re.sub(r"\W", "_", item)
