"""A text with a position, from which patterns are taken."""

from __future__ import annotations

import re

from fullpipe.packetdrill.script import ScriptError

_BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
#: Letters of the text that a message shows.
_SHOWN_LETTERS = 30


class Scanner:
    """Knows where in the text it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._end = 0

    def skip(self) -> None:
        """Goes past blanks and comments."""
        blank = _BLANK.match(self._text, self._at)
        if blank is not None:
            self._at = blank.end()

    def is_done(self) -> bool:
        """Whether nothing is left."""
        self.skip()
        return self._at == len(self._text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What matches here, behind blanks; goes past it."""
        self.skip()
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = self._end = match.end()
        return match

    def need(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """The same. Raises ScriptError if nothing matches."""
        match = self.take(pattern)
        if match is None:
            raise self.error(f"expected {expected}")
        return match

    def error(self, sentence: str) -> ScriptError:
        """An error at this position."""
        shown = self._text[self._at : self._at + _SHOWN_LETTERS].split("\n")[0]
        return ScriptError(self.line, f"{sentence} at `{shown}`")

    @property
    def line(self) -> int:
        """The line that it is in, from 1."""
        return self._text.count("\n", 0, self._at) + 1

    @property
    def position(self) -> int:
        """Letters before."""
        return self._at

    def since(self, position: int) -> str:
        """The text from a position to the end of what was taken last, as one line."""
        return " ".join(self._text[position : self._end].split())
