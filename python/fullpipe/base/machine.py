"""What differs between the systems that this runs on. It knows nothing of what runs."""

from __future__ import annotations

import os
import platform

from fullpipe.base.errors import UserError


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: taskset(1) and containers leave fewer than all
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def needs_linux(subject: str) -> None:
    """Raises UserError on another system. `subject` needs Linux; it begins the message."""
    if platform.system() != "Linux":
        raise UserError(f"{subject} needs Linux, and this is {platform.system()}")
