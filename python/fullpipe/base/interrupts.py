"""What SIGINT and SIGTERM do where they would raise KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_taken(take: Callable[[int], None]) -> Iterator[None]:
    """While the block runs, signals that would raise KeyboardInterrupt call `take` with their
    number instead. Changes nothing in other threads than the main one, where none raises."""
    is_main = threading.current_thread() is threading.main_thread()
    raising = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in raising:
        signal.signal(number, lambda taken, _frame: take(taken))
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)
