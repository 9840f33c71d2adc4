"""First in, first out: bfifo and pfifo."""

from __future__ import annotations

from fullpipe.scenario.qdiscs.options import Options


class Fifo(Options):
    """First in, first out (bfifo, pfifo). It has no options."""
