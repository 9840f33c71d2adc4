"""Writes docs/evidence/scorecards/: the scorecards of built-in congestion controls, and a page that
compares them.

    python scripts/scorecards.py [--quick] [--jobs N] [NAME...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.commit import git_commit
from fullpipe.conformance.cases import DRAFT, cases_of
from fullpipe.conformance.runner import run_cases
from fullpipe.congestion.registry import cc_set, cc_sets
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.items import items
from fullpipe.scorecard.publish import comparison, own_page
from fullpipe.sweep.store import Store

_FOLDER = Path(__file__).parent.parent / "docs" / "evidence" / "scorecards"


def main() -> int:
    """Runs what the store lacks and writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and paths")
    parser.add_argument("--jobs", type=int, help="processes; default: all cores")
    parser.add_argument("names", nargs="*", help="congestion controls; default: all")
    given = parser.parse_args()
    store = Store(user_cache() / "scorecards", create=True)
    names = given.names or list(cc_sets())
    card = run_card(names[0], names[1:], items(), store, given.quick, jobs=given.jobs)
    commit = (git_commit() or "unknown")[:8]
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / "README.md").write_text(comparison(card, commit), encoding="utf-8")
    for name in names:
        family = cc_set(name).algorithm == "bbr3"
        draft = run_cases(name, cases_of(DRAFT), store, given.quick, given.jobs) if family else []
        text = own_page({**card, "scorecard": name}, [found.document(name) for found in draft])
        (_FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
