"""Names of a package whose modules are loaded when a name is asked for (PEP 562). Knows no name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def deferred(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The package's `__getattr__`. `homes`: module of the package -> names that it has."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)

    return get
