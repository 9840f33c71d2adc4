"""Observations as arrays (fullpipe/congestion/policy.py has what is in them)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fullpipe.congestion.policy import FEATURES

Floats = npt.NDArray[np.float32]

LEAST, LARGEST = (np.array([row[at] for row in FEATURES], np.float32) for at in (1, 2))


def within_bounds(rows: npt.ArrayLike) -> Floats:
    """Observations as float32, which rounds none of them out of its bounds."""
    return np.asarray(rows, np.float32).clip(LEAST, LARGEST)
