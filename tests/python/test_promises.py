"""Names in users' files and programs go on working (docs/reference/stability.md). One that goes
needs a line under Removed in CHANGELOG.md before `python scripts/promises.py` forgets it."""

from __future__ import annotations

import json
from pathlib import Path

from repository_scripts import script

ROOT = Path(__file__).resolve().parents[2]
PROMISED = json.loads((ROOT / "tests" / "data" / "promises.json").read_text(encoding="utf-8"))


def test_no_name_that_users_write_is_gone() -> None:
    today = script("promises").promises()
    gone = [f"{kind}: {name}" for kind, names in PROMISED.items()
            for name in sorted(set(names) - set(today[kind]))]  # fmt: skip
    assert not gone, (
        "these are gone; bring them back, or name them in CHANGELOG.md under Removed with what to "
        "write instead, and run python scripts/promises.py:\n" + "\n".join(gone)
    )


def test_every_new_name_is_promised_too() -> None:
    """So that the next change cannot take it away unseen."""
    today = script("promises").promises()
    new = {kind: sorted(set(names) - set(PROMISED[kind])) for kind, names in today.items()}
    assert not any(new.values()), f"run python scripts/promises.py; it lacks {new}"
