"""The papers as experiments: a catalogue of figures and tables, run, measured and judged.

Data flows one way: entry (a TOML file) -> cells of its grid -> runs in a store -> values ->
verdicts -> pages. Nothing here knows how an engine works or what an algorithm does.
"""

from fullpipe.papers.catalogue import load_catalogue, load_entry
from fullpipe.papers.entry import Entry
from fullpipe.papers.grid import Cell, cells_of
from fullpipe.papers.run_store import Store, default_store
from fullpipe.papers.runner import run_entries
from fullpipe.papers.verdicts import EntryVerdicts, Verdict, judge
from fullpipe.sweep.schedule import Progress

__all__ = [
    "Cell",
    "Entry",
    "EntryVerdicts",
    "Progress",
    "Store",
    "Verdict",
    "cells_of",
    "default_store",
    "judge",
    "load_catalogue",
    "load_entry",
    "run_entries",
]
