"""The papers as experiments: a catalogue of figures and tables, run, measured and judged.

Data flows one way: entry (a TOML file) -> cells of its grid -> runs in a store -> values ->
verdicts -> pages. Nothing here knows how an engine works or what an algorithm does.
"""

from fullpipe.experiments.catalogue import load_catalogue, load_entry
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.grid import Cell, cells_of
from fullpipe.experiments.run_store import Store, default_store
from fullpipe.experiments.runner import run_entries
from fullpipe.experiments.verdicts import EntryVerdicts, Verdict, judge
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
