"""Sections of a document as classes: their keys, what each may be, and what must hold among them.

A document that is plainly right is read here, by the types with which the keys are declared. About
anything else (a mistake to explain, a number written as text, the JSON schema) Pydantic decides:
the same declarations are made its models (`checking`). Loading it takes longer than all else that
a run's plan needs, so what is plainly right goes without. Knows no key.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

_MISSING = object()
#: Whole numbers beyond it are not all floats.
_MOST_EXACT = 2**53

_Method = TypeVar("_Method", bound=Any)
_Read = Callable[[Any], Any]


class OddError(Exception):
    """Not plainly right: Pydantic has to look."""


class Key:
    """What a key may be beside its type. Made by `Field`."""

    def __init__(self, default: Any, default_factory: Any, limits: dict[str, Any]) -> None:
        self.default, self.default_factory = default, default_factory
        #: As Pydantic's `Field` takes them, `description` among them.
        self.limits = limits

    @property
    def is_required(self) -> bool:
        """Whether a document must have it."""
        return self.default is _MISSING and self.default_factory is None

    @property
    def is_made_anew(self) -> bool:
        """Whether `usual` does more than give the default."""
        plain = self.default_factory is None and self.default is not _MISSING
        return not plain or isinstance(self.default, list | dict)

    def usual(self) -> Any:
        """The value where the document has none. Raises OddError where it must have one."""
        if self.default_factory is not None:
            return self.default_factory()
        if self.default is _MISSING:
            raise OddError
        return self.default.copy() if isinstance(self.default, list | dict) else self.default

    def check(self, value: Any) -> Any:
        """The value. Raises OddError beyond the limits."""
        limits = self.limits
        if value is None:
            return value
        if not (
            limits.get("ge", -math.inf) <= value <= limits.get("le", math.inf)
            and limits.get("gt", -math.inf) < value < limits.get("lt", math.inf)
            if isinstance(value, int | float)
            else limits.get("min_length", 0) <= len(value) <= limits.get("max_length", sys.maxsize)
        ):
            # Infinities and NaN among them, which no limit's absence lets pass.
            raise OddError
        if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
            raise OddError
        return value

    @property
    def checks(self) -> bool:
        """Whether there is something to check."""
        return any(name != "description" for name in self.limits)


def Field(  # noqa: N802, as Pydantic's
    default: Any = _MISSING, *, default_factory: Any = None, **limits: Any
) -> Any:
    """A key's default, `description` and limits (ge, gt, le, lt, min_length, max_length, pattern,
    allow_inf_nan), with the meaning that Pydantic gives them."""
    return Key(default, default_factory, limits)


class Parsed:
    """A type's mark: its text is parsed first. `parse` raises ValueError; `schema` is its JSON
    schema."""

    def __init__(self, parse: _Read, schema: dict[str, Any]) -> None:
        self.parse, self.schema = parse, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.parse, schema=handler(source))

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def model_validator(mode: Literal["before", "after"]) -> Callable[[_Method], _Method]:
    """A method that is asked before (a class method: the document) or after (the section) all keys
    were read; it raises ValueError, the text beginning with the key."""

    def mark(method: _Method) -> _Method:
        getattr(method, "__func__", method).asked = mode
        return method

    return mark


def field_validator(key: str) -> Callable[[_Method], _Method]:
    """A class method that is given the value of a key that was read, and returns it; it raises
    ValueError."""

    def mark(method: _Method) -> _Method:
        method.__func__.asked = f"of {key}"
        return method

    return mark


class Part:
    """A section of a document, frozen. Keys are declared as a data class's; a key that is declared
    with no default must be there."""

    #: Other keys: refused, passed over, or `numbers`.
    _others: Literal["forbid", "ignore", "numbers"] = "forbid"
    _strict = False
    _keys: Mapping[str, Key] = {}
    _asked: Mapping[str, str] = {}

    def __init_subclass__(cls) -> None:
        keys: dict[str, Key] = {}
        asked: dict[str, str] = {}
        for base in reversed(cls.__mro__[1:]):
            keys |= vars(base).get("_keys", {})
            asked |= vars(base).get("_asked", {})
        for name in declared(cls):
            if not name.startswith("_"):
                given = cls.__dict__.get(name, _MISSING)
                keys[name] = given if isinstance(given, Key) else Key(given, None, {})
        for name, member in vars(cls).items():
            mode = getattr(getattr(member, "__func__", member), "asked", None)
            if mode is not None:
                asked[name] = mode
        cls._keys, cls._asked, cls._readers = keys, asked, {}
        cls._plain = {name: key.default for name, key in keys.items()}
        cls._made_anew = [name for name, key in keys.items() if key.is_made_anew]

    _readers: dict[str, _Read]
    #: Defaults by key, and the keys for which `usual` has to be asked instead.
    _plain: dict[str, Any]
    _made_anew: list[str]

    def __init__(self, **values: Any) -> None:
        """Raises ValidationError (Pydantic's) where a value is wrong."""
        self.__dict__.update(vars(type(self).model_validate(values)))

    @classmethod
    def model_validate(cls, document: Any) -> Self:
        """The section in a dictionary. Raises ValidationError (Pydantic's)."""
        try:
            return cls._read(document)
        except (OddError, ValueError):
            from fullpipe.base.checking import checked

            return checked(cls, document)

    @classmethod
    def model(cls) -> type[BaseModel]:
        """The same as a model of Pydantic."""
        from fullpipe.base.checking import model_of

        return model_of(cls)

    @classmethod
    def usual(cls, key: str) -> Any:
        """What a key is where the document has none."""
        return cls._keys[key].usual()

    @classmethod
    def keys_of(cls) -> list[str]:
        """All keys, in their order."""
        return list(cls._keys)

    @property
    def numbers(self) -> dict[str, float]:
        """The other keys, where they are numbers."""
        return dict(self.__dict__["_numbers"])

    def model_copy(self, update: Mapping[str, Any]) -> Self:
        """Itself with other values, which are not checked."""
        return self._made({**vars(self), **update})

    @classmethod
    def _made(cls, values: Mapping[str, Any]) -> Self:
        made = cls.__new__(cls)
        made.__dict__.update(values)
        return made

    @classmethod
    def _read(cls, document: Any) -> Self:
        """The section where the document is plainly right. Raises OddError or ValueError."""
        if isinstance(document, cls):
            return document
        for name, mode in cls._asked.items():
            if mode == "before":
                document = getattr(cls, name)(document)
        if type(document) is not dict:
            raise OddError
        # Most keys are left out of most documents.
        values = cls._plain.copy()
        for name in cls._made_anew:
            if name not in document:
                values[name] = cls._keys[name].usual()
        others = []
        for name, written in document.items():
            key = cls._keys.get(name)
            if key is None:
                others.append(name)
            else:
                values[name] = cls._value(name, key, written)
        if others and cls._others == "forbid":
            raise OddError
        if cls._others == "numbers":
            values["_numbers"] = {_is(name, str): _float(document[name]) for name in others}
        made = cls._made(values)
        for name, mode in cls._asked.items():
            if mode == "after":
                getattr(made, name)()
            elif mode.startswith("of "):
                about = mode.removeprefix("of ")
                if about in document:
                    made.__dict__[about] = getattr(made, name)(values[about])
        return made

    @classmethod
    def _value(cls, name: str, key: Key, written: Any) -> Any:
        read = cls._readers.get(name)
        if read is None:
            read = cls._readers[name] = _reader(cls.kind_of(name))
            if key.checks:
                inner = read
                read = cls._readers[name] = lambda value: key.check(inner(value))
        return read(written)

    @classmethod
    def kind_of(cls, key: str) -> Any:
        """The type with which a key is declared."""
        for base in cls.__mro__:
            kind = declared(base).get(key)
            if kind is not None:
                names = vars(sys.modules[base.__module__])
                return eval(kind, names) if isinstance(kind, str) else kind
        raise KeyError(key)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"


def declared(cls: type) -> dict[str, Any]:
    """Names that a class itself declares, with their types as text."""
    found: dict[str, Any] = vars(cls).get("__annotations__", {})
    return found


def _reader(kind: Any) -> _Read:
    """What reads a value of this type; raises OddError or ValueError for all but plain ones."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _marked(_reader(inner[0]), inner[1:])
    if origin in (Union, UnionType):
        return _one_of([_reader(one) for one in inner])
    if origin is Literal:
        return _literal(inner)
    if origin is list:
        one = _reader(inner[0])
        return lambda value: [one(item) for item in _is(value, list)]
    if origin is tuple:
        return _tuple([_reader(item) for item in inner])
    if origin is dict:
        name, one = (_reader(item) for item in inner)
        return lambda value: {name(key): one(item) for key, item in _is(value, dict).items()}
    if kind is float:
        return _float
    if kind in (str, int, bool, NoneType):
        return lambda value: _is(value, kind)
    if isinstance(kind, type) and issubclass(kind, Part):
        return kind._read
    if isinstance(kind, type):
        return lambda value: _is(value, kind)
    raise TypeError(f"{kind!r}: a key cannot be of this type")


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise OddError
    return value


def _float(value: Any) -> float:
    if type(value) is int and abs(value) <= _MOST_EXACT:
        return float(value)
    return float(_is(value, float))


def _literal(known: tuple[Any, ...]) -> _Read:
    def read(value: Any) -> Any:
        for one in known:
            if type(value) is type(one) and value == one:
                return one
        raise OddError

    return read


def _tuple(readers: list[_Read]) -> _Read:
    def read(value: Any) -> Any:
        if type(value) not in (list, tuple) or len(value) != len(readers):
            raise OddError
        return tuple(one(item) for one, item in zip(readers, value, strict=True))

    return read


def _one_of(readers: list[_Read]) -> _Read:
    """The alternatives of one key have no value in common, so the first that reads it is right."""

    def read(value: Any) -> Any:
        for one in readers:
            try:
                return one(value)
            except (OddError, ValueError):
                continue
        raise OddError

    return read


def _marked(read: _Read, marks: tuple[Any, ...]) -> _Read:
    for mark in marks:
        if isinstance(mark, Parsed):
            read = _parsed(read, mark.parse)
        elif isinstance(mark, Key):
            read = _parsed(mark.check, read)
        else:
            raise TypeError(f"{mark!r}: a type cannot have this mark")
    return read


def _parsed(read: _Read, parse: _Read) -> _Read:
    return lambda value: read(parse(value))
