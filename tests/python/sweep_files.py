"""Sweeps for tests: documents, and stores filled from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fullpipe.sweep.file import Sweep, read_sweep
from fullpipe.sweep.pool import Here
from fullpipe.sweep.running import WHOLE, Outcome, Shard, run_sweep
from fullpipe.sweep.schedule import Executor
from fullpipe.sweep.store import Store


def document(**changes: Any) -> dict[str, Any]:
    """A sweep of six cells with two seeds, a hundredth of a second of work."""
    base: dict[str, Any] = {
        "scenario": {
            "duration": "2s",
            "warmup": "500ms",
            "path": {"rate": "10mbit", "rtt": "{rtt}", "buffer": "{buffer}bdp", "loss": "0.5%"},
            "flow": [{"cc": "{cc}"}, {"cc": "cubic", "start": "1s", "amount": "20KB"}],
            "probe": [{"kind": "ping"}],
        },
        "axis": {"rtt": ["10ms", "40ms"], "buffer": [0.5, 1, 4], "cc": ["bbr3"]},
        "sweep": {"seeds": 2},
    }
    return {**base, **changes}


def sweep(**changes: Any) -> Sweep:
    """The same, read."""
    return read_sweep(document(**changes), "test.toml")


def filled(
    folder: Path, found: Sweep, shard: Shard = WHOLE, executor: Executor | None = None
) -> tuple[Store, Outcome]:
    """A store in the folder with the sweep's runs."""
    store = Store(folder, create=True)
    return store, run_sweep(found, store, executor or Here(), shard)


def rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    """All rows of a store."""
    return {name: store.table(name).to_pylist() for name in ("runs", "flows", "path")}
