"""The compiled fluid models behind one function: specs in, outcomes out, in parallel."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.machine import cores

Spec = dict[str, Any]
Outcome = dict[str, Any]


def run_many(
    model: Literal["fluid", "fluid_extended"],
    specs: Sequence[Spec],
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> list[Outcome]:
    """Runs all specs on so many threads (default: all cores); outcomes are in the specs' order.

    `on_progress` gets the share done, 0 to 1. Raises UserError for a spec out of range."""
    threads = threads or cores()
    run = getattr(_native.model, model)
    outcomes: list[Outcome] = []
    # In portions, so that Ctrl-C is noticed between two of them.
    portion = 2 * threads
    for begin in range(0, len(specs), portion):
        try:
            text = run(json.dumps(list(specs[begin : begin + portion])), threads)
        except ValueError as error:
            raise UserError(f"fluid model: {error}") from None
        outcomes += json.loads(text)
        if on_progress is not None:
            on_progress(len(outcomes) / len(specs))
    return outcomes
