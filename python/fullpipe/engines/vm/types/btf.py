"""Types in BTF (Documentation/bpf/btf.rst), the form of a kernel and its modules. A module's types
follow the kernel's and refer to them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from fullpipe.engines.vm.types.model import Array, Member, Number, Structure, Type, named

_MAGIC = 0xEB9F
#: Kinds (include/uapi/linux/btf.h), and the bytes of what follows a type: a fixed part, and one for
#: each of its members.
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM = range(1, 7)
_TYPEDEF, _VOLATILE, _CONST, _RESTRICT = 8, 9, 10, 11
_TYPE_TAG, _ENUM64 = 18, 19
_FIXED = {_INT: 4, _ARRAY: 12, 14: 4, 17: 4}
_EACH = {_STRUCT: 12, _UNION: 12, _ENUM: 8, 13: 8, 15: 12, _ENUM64: 12}
_IS_SIGNED = 1
#: Structures within structures, and typedefs of typedefs, at most.
_DEPTH = 16
_HEAD = struct.Struct("<III")


class Btf:
    """The types of a kernel, or with `base` of a module. Raises ValueError where they are
    damaged."""

    def __init__(self, content: bytes, base: Btf | None = None) -> None:
        try:
            magic, _, _, header, types, type_bytes, texts, text_bytes = struct.unpack_from(
                "<HBBIIIII", content
            )
        except struct.error as error:
            raise ValueError(f"BTF: {error}") from None
        if magic != _MAGIC:
            raise ValueError("BTF: another byte order, or none")
        self._base = base
        self._types = content[header + types : header + types + type_bytes]
        self._texts = content[header + texts : header + texts + text_bytes]
        self._first = base.end if base else 1
        self._first_text = base.end_of_texts if base else 0
        self._offsets = list(self._walk())
        self.end: int = self._first + len(self._offsets)
        self.end_of_texts: int = self._first_text + len(self._texts)

    def structures(self, most_bytes: int) -> Iterator[tuple[Structure, bool]]:
        """The named structures of its own of at most so many bytes, and of each whether something
        points to it."""
        pointed = {
            kind_type[2]
            for kind_type in map(self._at, range(self._first, self.end))
            if kind_type[0] == _PTR
        }
        pointed |= {
            target
            for number in pointed
            for kind, _, target, _ in [self._at(number)]
            if kind in (_CONST, _VOLATILE)
        }
        for number in range(self._first, self.end):
            kind, info, size, _ = self._at(number)
            if kind == _STRUCT and size <= most_bytes and info:
                structure = self.type_of(number)
                if isinstance(structure, Structure) and structure.name:
                    yield structure, number in pointed

    def structure(self, name: str) -> Structure | None:
        """A structure of its own by its name."""
        for number in range(self._first, self.end):
            kind, members, _, offset = self._at(number)
            if kind == _STRUCT and members and self._name(offset) == name:
                structure = self.type_of(number)
                return structure if isinstance(structure, Structure) else None
        return None

    def type_of(self, number: int, depth: int = 0) -> Type:
        """A type by its number."""
        if number == 0 or depth > _DEPTH:
            return None
        if number < self._first:
            return self._base.type_of(number, depth) if self._base else None
        kind, count, size, offset = self._at(number)
        if kind in (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG):
            inner = self.type_of(size, depth + 1)
            return named(self._name(offset), inner) if kind == _TYPEDEF else inner
        if kind == _INT:
            (word,) = struct.unpack_from("<I", self._types, offset + 12)
            return Number(word & 0xFF or size * 8, bool(word >> 24 & _IS_SIGNED))
        if kind in (_ENUM, _ENUM64):
            return Number(size * 8, self._has_flag(offset))
        if kind == _ARRAY:
            element, _, length = struct.unpack_from("<III", self._types, offset + 12)
            bits = self._bytes_of(element) * 8
            return Array(self.type_of(element, depth + 1), length, bits)
        if kind in (_STRUCT, _UNION):
            name = self._name(offset)
            members = tuple(self._members(offset, count, depth))
            return named(name, Structure(name, size, kind == _UNION, members))
        return None

    def _members(self, offset: int, count: int, depth: int) -> Iterator[Member]:
        has_bits = self._has_flag(offset)
        for index in range(count):
            text, number, word = _HEAD.unpack_from(self._types, offset + 12 + 12 * index)
            at_bits, bits = (word & 0xFFFFFF, word >> 24) if has_bits else (word, 0)
            yield Member(self._text(text), at_bits, bits, self.type_of(number, depth + 1))

    def _bytes_of(self, number: int) -> int:
        for _ in range(_DEPTH):
            if number < self._first:
                return self._base._bytes_of(number) if self._base and number else 0
            kind, _, size, _ = self._at(number)
            if kind in (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG):
                number = size
            else:
                return 8 if kind == _PTR else size if kind != _ARRAY else 0
        return 0

    def _at(self, number: int) -> tuple[int, int, int, int]:
        """A type's kind, how many members it has, its size or the type that it refers to, and where
        it is. Its own types only."""
        if not self._first <= number < self.end:
            return 0, 0, 0, 0
        offset = self._offsets[number - self._first]
        _, info, size = _HEAD.unpack_from(self._types, offset)
        return info >> 24 & 0x1F, info & 0xFFFF, size, offset

    def _has_flag(self, offset: int) -> bool:
        (_, info, _) = _HEAD.unpack_from(self._types, offset)
        return bool(info >> 31)

    def _name(self, offset: int) -> str:
        return self._text(_HEAD.unpack_from(self._types, offset)[0])

    def _text(self, offset: int) -> str:
        if offset < self._first_text:
            return self._base._text(offset) if self._base else ""
        start = offset - self._first_text
        end = self._texts.find(b"\0", start)
        return self._texts[start : max(end, start)].decode("utf-8", "replace")

    def _walk(self) -> Iterator[int]:
        """Where each type begins."""
        offset, end, unpack = 0, len(self._types), _HEAD.unpack_from
        while offset + 12 <= end:
            yield offset
            info = unpack(self._types, offset)[1]
            kind = info >> 24 & 0x1F
            offset += 12 + _FIXED.get(kind, 0) + _EACH.get(kind, 0) * (info & 0xFFFF)


@lru_cache(maxsize=4)
def kernels(content: bytes) -> Btf:
    """The types of a kernel; cached, since they are 150,000."""
    return Btf(content)
