"""Typer under its name, loaded where something is asked of it: when it reads what a command takes,
which a command that runs by the table (`table`) never needs.
"""

from __future__ import annotations

import importlib
from typing import Any


class _Later:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("typer"), name)


typer = _Later()
