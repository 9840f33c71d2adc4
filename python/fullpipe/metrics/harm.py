"""Harm: what sharing a path with another costs (Ware et al., HotNets 2019)."""

from __future__ import annotations

import math
from typing import Literal


def harm(alone: float, beside: float, better: Literal["more", "less"]) -> float:
    """0: none, 1: nothing is left; negative where sharing helped.

    Where more is better (goodput) (alone - beside) / alone, where less is better (delay)
    (beside - alone) / beside. NaN where neither was there."""
    above, below = (alone - beside, alone) if better == "more" else (beside - alone, beside)
    if math.isinf(below):
        return 1.0 if math.isfinite(alone) else math.nan
    return above / below if below > 0 else math.nan
