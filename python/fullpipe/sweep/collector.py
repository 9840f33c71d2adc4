"""Python's collector of cycles, held off where much is made or kept that has none.

Knows nothing of what is made.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Plans and tables of numbers have no cycles; looking for some takes a tenth of their time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """What is there now is not looked at meanwhile, so that neither this process nor its forks,
    which would copy the memory for it, walk through all that is planned; what is new is."""
    was = gc.isenabled()
    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        if not was:
            gc.disable()
        gc.unfreeze()
