"""Compares a kernel's answers with the model's, and reduces a script that differs to the events
that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.differential.subjects import TCP, Subject

Answers = Callable[[Sequence[str]], list[str]]

#: Of a script that is wrong.
_SHOWN_LETTERS = 60
#: A reduction ends here, whatever is left.
_MOST_ROUNDS = 12


@dataclass(frozen=True)
class Difference:
    """The first event of a script after which the model is not as the kernel."""

    script: str
    event: int
    #: What differs: its name (a field of tcp_info, `sent`, `order`), the kernel's value, the
    #: model's.
    values: tuple[tuple[str, str, str], ...]

    @property
    def name(self) -> str:
        """The script's."""
        return str(json.loads(self.script)["name"])

    @property
    def kind(self) -> str:
        """The names of what differs."""
        return " ".join(name for name, _, _ in self.values)

    def sentence(self) -> str:
        """In words."""
        document = json.loads(self.script)
        happened = document["events"][self.event] if self._is_inside(document) else {}
        differences = "; ".join(
            f"{name}: kernel {kernel}, model {model}" for name, kernel, model in self.values
        )
        return f"{document['name']}, event {self.event} {json.dumps(happened)}: {differences}"

    def _is_inside(self, document: dict[str, Any]) -> bool:
        return self.event < len(document["events"])


def difference(script: str, answer: str, model: str, subject: Subject = TCP) -> Difference | None:
    """Where the model differs from a kernel's answer; None if it agrees. Raises UserError if one of
    them is none."""
    try:
        first = subject.judge(script, answer, model)
    except ValueError as error:
        raise UserError(f"{script[:_SHOWN_LETTERS]}: {error}") from None
    if first is None:
        return None
    values = tuple((row["what"], row["kernel"], row["model"]) for row in first["differences"])
    return Difference(script, first["event"], values)


def differences(
    scripts: Sequence[str], answered: Sequence[str], model: str, subject: Subject = TCP
) -> list[Difference]:
    """The scripts in which the model differs."""
    pairs = zip(scripts, answered, strict=True)
    judged = (difference(script, answer, model, subject) for script, answer in pairs)
    return [each for each in judged if each is not None]


def reduced(first: Difference, answers: Answers, model: str, subject: Subject = TCP) -> Difference:
    """The same kind of difference with as few events as leaving out finds. Each round is one call
    of `answers`."""
    smallest, parts = first, 2
    for _ in range(_MOST_ROUNDS):
        candidates = subject.shorter(smallest.script, smallest.event, parts)
        differing = differences(candidates, answers(candidates), model, subject)
        same = [each for each in differing if each.kind == first.kind]
        size = len(json.loads(smallest.script)["events"])
        if same:
            best = min(same, key=lambda each: each.event)
            smallest = replace(best, script=_cut(best))
            parts = max(parts - 1, 2)
        elif parts >= size:
            break
        else:
            parts = min(2 * parts, size)
    return smallest


def _cut(difference: Difference) -> str:
    """Its script up to the event that differs."""
    document = json.loads(difference.script)
    document["events"] = document["events"][: difference.event + 1]
    return json.dumps(document)
