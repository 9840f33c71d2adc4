"""Untrusted text (files, exceptions, compilers, stores), made safe to print."""

from __future__ import annotations

import unicodedata

#: Most characters of a message.
MAX_MESSAGE = 4000
#: Unicode categories that move the cursor, give orders to a terminal, hide or reorder what is
#: beside them: controls, formats, surrogates, separators of lines and paragraphs.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str, most: int = MAX_MESSAGE) -> str:
    """The text with `?` for what is no visible character, line end or tab, and cut after so many
    characters."""
    if len(text) > most:
        text = f"{text[:most]} ... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(
        "?" if letter not in "\n\t" and unicodedata.category(letter) in _UNSEEN else letter
        for letter in text
    )


def message_of(error: object, most: int = MAX_MESSAGE) -> str:
    """An error's words. Further lines are indented: none looks like a message of its own."""
    return printable(str(error), most).replace("\n", "\n  ")
