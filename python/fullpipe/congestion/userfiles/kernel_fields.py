"""The fields of the structure behind inet_csk_ca(sk), which is what a kernel's file knows of a
connection: as variables of the contract (cc/state.h). Must never compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fullpipe.congestion.userfiles.source import blanked
from fullpipe.congestion.userfiles.tokens import Token, closing, tokens_of

#: What the values are fields of, in C (kernel_wrapper.py).
STRUCTURE = "LINUX_FIELDS"
#: Of arrays, so many elements are variables; of a structure, so many fields.
MOST_ELEMENTS, MOST_FIELDS = 4, 64
#: Structures within it that hold one value.
_READ_WITH = {"minmax": "minmax_get(&{})"}
#: Types whose values are no numbers of their own.
NO_NUMBERS = {"spinlock_t", "ktime_t", "timer_list", "list_head", "rcu_head", "work_struct"}
#: Fields that fill a word.
FILLER = re.compile(r"_*(unused|pad(ding)?|reserved)\w*")
_COMMENT = re.compile(r"/\*\s*(.*?)\s*(?:\*/|$)|//\s*(.*)")


class Field(NamedTuple):
    """A variable: its name, its value as an expression of the structure, and what the file says of
    it."""

    name: str
    value: str
    meaning: str


def fields_of(structure: str, files: Mapping[str, str]) -> list[Field]:
    """The fields of `struct STRUCTURE` that are numbers; empty if no file defines it."""
    for text in files.values():
        tokens = tokens_of(blanked(text))
        body = _body(tokens, structure)
        if body is not None:
            lines = text.split("\n")
            fields = list(_fields(body, "", structure, files, lines))
            return list({field.name: field for field in fields}.values())[:MOST_FIELDS]
    return []


def _body(tokens: Sequence[Token], structure: str) -> Sequence[Token] | None:
    for index in range(len(tokens) - 2):
        texts = [token.text for token in tokens[index : index + 3]]
        if texts == ["struct", structure, "{"]:
            return tokens[index + 3 : closing(tokens, index + 2)]
    return None


def _fields(
    body: Sequence[Token], path: str, structure: str, files: Mapping[str, str], lines: list[str]
) -> Iterator[Field]:
    depth = 0  # of #if
    for declaration in _declarations(body):
        depth += sum(_opened(token.text) for token in declaration if token.kind == "directive")
        code = [token for token in declaration if token.kind != "directive"]
        if code and depth == 0:
            yield from _declared(code, path, structure, files, lines)


def _opened(directive: str) -> int:
    word = directive.lstrip("# \t")
    return 1 if word.startswith("if") else -1 if word.startswith("endif") else 0


def _declarations(body: Sequence[Token]) -> Iterator[list[Token]]:
    index, begin = 0, 0
    while index < len(body):
        if body[index].text in ("{", "("):
            index = closing(body, index)
        elif body[index].text == ";":
            yield list(body[begin:index])
            begin = index + 1
        index += 1


def _declared(
    code: list[Token], path: str, structure: str, files: Mapping[str, str], lines: list[str]
) -> Iterator[Field]:
    texts = [token.text for token in code]
    meaning = _meaning(lines, code[-1].line) or f"field of struct {structure}"
    if "{" in texts:
        at = texts.index("{")
        name = next((token.text for token in code[closing(code, at) + 1 :]), "")
        inner = code[at + 1 : closing(code, at)]
        yield from _fields(inner, f"{path}{name}." if name else path, structure, files, lines)
        return
    if {"*", "("} & set(texts) or NO_NUMBERS & set(texts):
        return
    kind = texts[texts.index("struct") + 1] if "struct" in texts else ""
    if "union" in texts or kind == structure:
        return
    within = [] if not kind or kind in _READ_WITH else fields_of(kind, files)
    for declarator in _declarators(code):
        for element in _elements(declarator):
            word = re.sub(r"\W+", "_", f"{path}{element}").strip("_")
            value = f"{STRUCTURE}->{path}{element}"
            if not kind or kind in _READ_WITH:
                yield Field(word, _READ_WITH.get(kind, "{}").format(value), meaning)
            for inner_field in within:
                inner_value = inner_field.value.replace(f"{STRUCTURE}->", f"{value}.")
                yield Field(f"{word}_{inner_field.name}", inner_value, inner_field.meaning)


def _declarators(code: Sequence[Token]) -> list[list[Token]]:
    """What stands between the commas."""
    declarators: list[list[Token]] = [[]]
    for token in code:
        if token.text == ",":
            declarators.append([])
        else:
            declarators[-1].append(token)
    return declarators


def _elements(declarator: Sequence[Token]) -> list[str]:
    """The field's name, or its elements; empty for an array whose length is no number."""
    texts = [token.text for token in declarator]
    end = next((at for at, text in enumerate(texts) if text in (":", "[")), len(texts))
    names = [
        token.text
        for token in declarator[:end]
        if token.kind == "name" and not token.text.startswith("__")
    ]
    if not names or FILLER.fullmatch(names[-1]):
        return []
    if end == len(texts) or texts[end] == ":":
        return [names[-1]]
    length = texts[end + 1] if texts.count("[") == 1 else ""
    count = min(int(length), MOST_ELEMENTS) if length.isdigit() else 0
    return [f"{names[-1]}[{number}]" for number in range(count)]


def _meaning(lines: list[str], line: int) -> str:
    """The comment behind a field."""
    match = _COMMENT.search(lines[line - 1]) if line <= len(lines) else None
    return " ".join((match[1] or match[2] or "").split()) if match else ""
