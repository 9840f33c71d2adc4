"""What libraries are told before they load, so that commands start sooner. A user's word counts.

Knows no command.
"""

from __future__ import annotations

import os

_TOLD = {
    # Threads of BLAS spin for a tenth of a second while NumPy loads; no large matrices here.
    "OPENBLAS_NUM_THREADS": "1",
    # Arrow allocates by mimalloc; the thread of its jemalloc would keep a sweep from forking its
    # workers (sweep/pool.py).
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # Pydantic would read what every installed package says of itself.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


def tell() -> None:
    """Sets what is not set."""
    for name, value in _TOLD.items():
        os.environ.setdefault(name, value)
