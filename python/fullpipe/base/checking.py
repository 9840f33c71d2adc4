"""Sections of documents (`parts`) as models of Pydantic: what is not plainly right is checked, and
explained, by it; so is their JSON schema made. Knows no key.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic import BaseModel, ConfigDict

from fullpipe.base.parts import Key, Part, declared

_Part = TypeVar("_Part", bound=Part)
_MODELS: dict[type[Part], type[BaseModel]] = {}
_PARTS: dict[type[BaseModel], type[Part]] = {}
_OTHERS: dict[str, Literal["forbid", "ignore", "allow"]] = {
    "forbid": "forbid", "ignore": "ignore", "numbers": "allow",
}  # fmt: skip


def checked(part: type[_Part], document: Any) -> _Part:
    """The section in a document. Raises ValidationError."""
    return _as_part(model_of(part).model_validate(_as_model(document)))  # type: ignore[no-any-return]


def model_of(part: type[Part]) -> type[BaseModel]:
    """The model that has the same keys, checks and methods."""
    if part not in _MODELS:
        _MODELS[part] = _made(part)
        _PARTS[_MODELS[part]] = part
    return _MODELS[part]


def _made(part: type[Part]) -> type[BaseModel]:
    own = {
        name: _asking(member)
        for name, member in vars(part).items()
        if isinstance(member, property) or callable(getattr(member, "__func__", member))
        if not name.startswith("__")
    }
    keys = [name for name in declared(part) if name in part._keys]
    first = part.__bases__[0]
    base = BaseModel if first is Part else model_of(first)
    numbers = {"__pydantic_extra__": dict[str, float]} if part._others == "numbers" else {}
    namespace = {
        **own,
        **{name: _field(part._keys[name]) for name in keys},
        "__annotations__": {**{name: _kind(part.kind_of(name)) for name in keys}, **numbers},
        "__module__": part.__module__, "__qualname__": part.__qualname__, "__doc__": part.__doc__,
        "model_config": ConfigDict(
            extra=_OTHERS[part._others], strict=part._strict, frozen=True,
            arbitrary_types_allowed=True, defer_build=True,
        ),
    }  # fmt: skip
    made: type[BaseModel] = type(part.__name__, (base,), namespace)
    return made


def _asking(member: Any) -> Any:
    mode: Any = getattr(getattr(member, "__func__", member), "asked", "")
    if mode == "before":
        return pydantic.model_validator(mode="before")(member)
    if mode == "after":
        return pydantic.model_validator(mode="after")(member)
    return pydantic.field_validator(mode.removeprefix("of "))(member) if mode else member


def _field(key: Key) -> Any:
    if key.is_required:
        return pydantic.Field(**key.limits)
    if key.default_factory is not None:
        return pydantic.Field(default_factory=key.default_factory, **key.limits)
    return pydantic.Field(_as_model(key.default), **key.limits)


def _kind(kind: Any) -> Any:
    """The type with models in place of sections."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        marks = [pydantic.Field(**mark.limits) if isinstance(mark, Key) else mark
                 for mark in inner[1:]]  # fmt: skip
        return Annotated[(_kind(inner[0]), *marks)]
    if origin in (list, tuple, dict):
        return origin[tuple(_kind(one) for one in inner)]
    if origin is not None and origin is not Literal:
        return Union[tuple(_kind(one) for one in inner)]  # noqa: UP007
    return model_of(kind) if isinstance(kind, type) and issubclass(kind, Part) else kind


def _as_model(value: Any) -> Any:
    """A value with models in place of sections."""
    if isinstance(value, Part):
        given = {name: _as_model(item) for name, item in vars(value).items()}
        return model_of(type(value)).model_construct(**given)
    if type(value) is dict:
        return {name: _as_model(item) for name, item in value.items()}
    return [_as_model(item) for item in value] if type(value) is list else value


def _as_part(value: Any) -> Any:
    """A value with sections in place of models."""
    if isinstance(value, BaseModel):
        part = _PARTS[type(value)]
        given = {name: _as_part(getattr(value, name)) for name in part.keys_of()}
        if part._others == "numbers":
            given["_numbers"] = dict(value.__pydantic_extra__ or {})
        return part._made(given)
    if type(value) is dict:
        return {name: _as_part(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_as_part(item) for item in value)
    return value
