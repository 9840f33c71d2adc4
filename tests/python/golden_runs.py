"""The runs whose digests are kept in tests/data/golden: scenarios, and their plans.

Must never know what a digest is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from every_feature import everything
from fullpipe.base.units import parse_time
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.document import find_files
from fullpipe.scenario.model import make_scenario

Keys = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data" / "golden"
#: Scenarios that the swarm's generator drew, one a line, as `Scenario` has them. They are kept, not
#: drawn anew: a new parameter set or a new feature of the generator changes all that it draws.
DRAWN = DATA / "scenarios.jsonl"


@dataclass(frozen=True)
class Scenario:
    """A scenario's document, and the files that it names, by their names."""

    document: Keys
    files: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def warmup_ns(self) -> int:
        return parse_time(self.document.get("warmup", 0))

    def plan(self, folder: Path) -> Keys:
        """The scenario resolved, with its files in this folder."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        copy = json.loads(json.dumps(self.document))
        if self.files:
            find_files(copy, folder)
        return resolve(make_scenario(copy))


def by_hand() -> list[Keys]:
    """What the generator does not draw."""
    return []


def scenarios() -> Iterator[Scenario]:
    """All of them; no two have the same name."""
    for one in (*everything(), *by_hand()):
        yield Scenario(one)
    with DRAWN.open(encoding="utf-8") as file:
        for line in file:
            yield Scenario(**json.loads(line))
