"""Sets of scenarios to train on, and others to judge by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.gym.episode import Document
from fullpipe.scenario.document import load_document


class PathSet(Sequence[Document]):
    """Scenarios in an order. `CongestionEnv(paths)` draws one of them for each episode."""

    def __init__(self, scenarios: Iterable[Document | str | Path]) -> None:
        """`scenarios`: TOML files and dictionaries of their shape. Raises UserError without any."""
        self._scenarios: list[Document] = [
            load_document(scenario) if isinstance(scenario, str | Path) else scenario
            for scenario in scenarios
        ]
        if not self._scenarios:
            raise UserError("PathSet: has no scenario; at least one is needed")

    @classmethod
    def drawn(
        cls, draw: Callable[[np.random.Generator], Document], count: int, seed: int = 0
    ) -> PathSet:
        """`count` scenarios that a function draws, such as `random_path`."""
        generators = np.random.default_rng(seed).spawn(count)
        return cls([draw(generator) for generator in generators])

    def split(self, held_out: float = 0.2, seed: int = 0) -> tuple[PathSet, PathSet]:
        """The set in two, by chance: to train on, and a share that is held out. Raises UserError
        where one of them would be empty."""
        apart = round(len(self) * held_out)
        if not 0 < apart < len(self):
            raise UserError(f"split: {held_out} of {len(self)} scenarios leaves one part empty")
        order = np.random.default_rng(seed).permutation(len(self))
        train, test = sorted(order[apart:]), sorted(order[:apart])
        return PathSet([self[at] for at in train]), PathSet([self[at] for at in test])

    def __call__(self, rng: np.random.Generator) -> Document:
        """One of them."""
        return self._scenarios[rng.integers(len(self))]

    def __len__(self) -> int:
        return len(self._scenarios)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> PathSet: ...
    def __getitem__(self, index: int | slice) -> Document | PathSet:
        if isinstance(index, slice):
            return PathSet(self._scenarios[index])
        return self._scenarios[index]


def random_path(rng: np.random.Generator) -> dict[str, Any]:
    """An agent alone for 10 s: 5 to 50 Mbit/s, 10 to 100 ms, a buffer of half to four BDP, and in
    one of four 1 % of loss."""
    rate, rtt = 5 * 10 ** rng.uniform(0, 1), 10 * 10 ** rng.uniform(0, 1)
    return {
        "duration": "10s",
        "path": {
            "rate": f"{rate:.3f}mbit",
            "rtt": f"{rtt:.3f}ms",
            "buffer": f"{2 ** rng.uniform(-1, 2):.3f}bdp",
            "loss": "1%" if rng.random() < 0.25 else "0%",
        },
        "flow": [{"cc": "agent"}],
    }
