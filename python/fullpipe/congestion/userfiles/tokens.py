"""C after its preprocessor as tokens with places. Must never know what an algorithm may do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LINE_MARKER = re.compile(r'#(?:line)?[ \t]+(\d+)[ \t]+"((?:\\.|[^"\\\n])*)"[^\n]*')
#: With the blanks in front.
_TOKEN = re.compile(
    r"""^[ \t\r\f\v]*(?P<directive>\#[^\n]*)\n?
    |[ \t\r\f\v]*+(?:
    (?P<text>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|[uUL]?'(?:\\.|[^'\\\n])*')
    |(?P<name>(?:[^\W0-9]|[$]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})(?:\w|[$]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*)
    |(?P<lines>\n+)
    |(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
    |(?P<sign>->|%:%:|%:|<:|:>|<%|%>|\#\#|[^ \t\r\f\v\n]))""",
    re.VERBOSE | re.MULTILINE,
)
#: Digraphs (C11 section 6.4.6).
_DIGRAPHS = {"<:": "[", ":>": "]", "<%": "{", "%>": "}", "%:": "#", "%:%:": "##"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """One token; `kind` is name, number, text (a string or a character), sign or directive (a line
    that the preprocessor left, such as a pragma)."""

    kind: str
    text: str
    file: str
    line: int

    @property
    def location(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"


def tokens_of(preprocessed: str) -> list[Token]:
    """The tokens of a preprocessor's output (`cc -E`), placed by its line markers."""
    tokens: list[Token] = []
    file, line = "", 1
    # Without the blanks at the end: the pattern would try each of them as a beginning.
    for match in _TOKEN.finditer(preprocessed.rstrip(" \t\r\f\v")):
        kind = match.lastgroup
        assert kind is not None
        text = match[kind]
        if kind == "lines":
            line += len(text)
        elif kind != "directive":
            tokens.append(Token(kind, _DIGRAPHS.get(text, text), file, line))
        elif marker := _LINE_MARKER.fullmatch(text):
            file, line = re.sub(r"\\(.)", r"\1", marker[2]), int(marker[1])
        else:
            tokens.append(Token(kind, text, file, line))
            line += 1
    return tokens


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at `opening`; the last index if none does."""
    kind, depth = tokens[opening].text, 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == "sign":
            depth += (tokens[index].text == kind) - (tokens[index].text == _CLOSING[kind])
            if depth == 0:
                return index
    return len(tokens) - 1


@dataclass(frozen=True)
class Function:
    """A function that is defined: its name, and the tokens of its body."""

    name: str
    body: Sequence[Token]


def functions_of(tokens: Sequence[Token]) -> list[Function]:
    """The functions that a translation unit defines, in its order."""
    functions = []
    index, begin = 0, 0  # `begin` of the declaration at hand
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "sign" and token.text == "{":
            end = closing(tokens, index)
            name = _declared_function(tokens[begin:index])
            if name is not None:
                functions.append(Function(name, tokens[index : end + 1]))
            index = begin = end + 1
            continue
        if token.kind == "sign" and token.text == ";":
            begin = index + 1
        index += 1
    return functions


def _declared_function(tokens: Sequence[Token]) -> str | None:
    """The name in front of a body: the first one before a parenthesis, attributes left out."""
    index = 0
    while index < len(tokens) - 1:
        token, after = tokens[index], tokens[index + 1]
        if token.text in ("=", "struct", "union", "enum") and token.kind in ("sign", "name"):
            if token.text == "=":
                return None
            index += 2  # its tag is no function
            continue
        if token.kind == "name" and after.text == "(" and after.kind == "sign":
            end = closing(tokens, index + 1)
            if token.text in _WITH_ARGUMENTS:
                index = end + 1
                continue
            if end + 1 < len(tokens) and tokens[end + 1].text == "(":
                inner = tokens[index + 2 : end]  # (name)(...), or (*name(...))(...)
                names = [word.text for word in inner if word.kind == "name"]
                return _declared_function(inner) or (names[-1] if names else None)
            return token.text
        index += 1
    return None


#: Names before a parenthesis that are not what is declared.
_WITH_ARGUMENTS = {
    "__attribute__",
    "__attribute",
    "_Alignas",
    "__typeof__",
    "typeof",
    "__typeof",
    "_Atomic",
}
