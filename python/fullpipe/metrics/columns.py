"""Columns that are made when they are asked for: a day's samples do not fit into memory at once.

Knows no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Lazy(Mapping[str, Value], Generic[Value]):
    """A mapping whose values are made by each access, and not kept."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Value]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
