"""Markdown that programs write into the manual. Must not know what it is about."""

from __future__ import annotations

import textwrap

#: Columns of a line.
WIDTH = 100


def filled(text: str) -> str:
    """The lines of a paragraph, or of an item of a list."""
    later = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
