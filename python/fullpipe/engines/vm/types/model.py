"""Types of C as far as numbers in a structure need them. Must never know where they were read."""

from __future__ import annotations

from dataclasses import dataclass

from fullpipe.congestion.userfiles.kernel_fields import NO_NUMBERS


@dataclass(frozen=True)
class Number:
    """An integer, an enumeration or a bool."""

    bits: int
    is_signed: bool


@dataclass(frozen=True)
class Array:
    """Of one dimension."""

    element: Type
    count: int
    element_bits: int


@dataclass(frozen=True)
class Member:
    """A field of a structure, or an anonymous structure in it."""

    #: Empty for an anonymous one.
    name: str
    at_bits: int
    #: Of a bit field; 0: those of its type.
    bits: int
    type: Type


@dataclass(frozen=True)
class Structure:
    """A structure or a union."""

    name: str
    bytes: int
    is_union: bool
    members: tuple[Member, ...]


#: None: no number, such as a pointer.
Type = Number | Array | Structure | None


def named(name: str, type_: Type) -> Type:
    """The type of that name; None for those whose values are no numbers of their own."""
    return None if name in NO_NUMBERS else type_
