"""The scenario reference, docs/scenario.md, and the JSON schema, made from the models that check
scenarios. Only what engines refuse and some examples are listed here."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined
from pydantic_core.core_schema import WithDefaultSchema

from fullpipe._native import DEFAULT_KERNEL
from fullpipe.scenario.fields import QUANTITIES, Quantity
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.qdiscs.options import Options
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

#: The engines that take a key, where not all take every value (crates/fullpipe-agent/src/check.rs;
#: between two hosts, the path is a real network).
ENGINES: dict[str, str] = {
    "rtt_spread": "all but two hosts",
    "path.rate": "all; vm, live: from 8kbit",
    "path.qdisc": "all; between two hosts: fifo",
    "path.loss": "all but two hosts",
    "path.reverse_loss": "all but two hosts",
    "path.jitter": "all but two hosts",
    **{
        f"{link}.{key}": "sim"
        for link in ("link", "link.reverse")
        for key in ("wifi_jitter", "policer.rate", "policer.burst", "hold.packets", "loss_marks")
    },
    **{
        f"{link}.rate_trace": "all but two hosts; vm, live: as steps of 20ms"
        for link in ("link", "link.reverse")
    },
    "link.kind": "all but two hosts; wifi: sim",
    "flow.cc": "all; kernel:NAME: vm, live",
    "flow.rtt": "all but two hosts",
    "flow.jitter": "all but two hosts",
    "traffic.configuration": "all but two hosts",
    "probe.kind": "all; between two hosts: ping",
    "host.tsq": "sim; vm, live: 1ms",
    "host.ack_policy": "all; every_second: sim",
    "host.tcp": f"sim; vm, live: {DEFAULT_KERNEL}, the kernel's own",
    "host.cc_facts": "sim; vm, live: stock",
    "host.receive_aggregation": "sim; vm, live: 0",
    "host.packet_cost": "sim; vm, live: 0",
    "host.ack_cost": "sim; vm, live: 0",
    "host.send_cost": "sim; vm, live: 0",
    "host.handshake_cost": "sim; vm, live: 0",
    "host.reader_pause": "sim; vm, live: 0",
    "host.reader_pause_spread": "sim",
    "host.reader_pause_every": "sim",
}
#: Examples that are more telling than the default or the type.
EXAMPLES: dict[str, Any] = {
    "name": "bufferbloat at home", "duration": "60s", "warmup": "5s", "seed": 7,
    "flent_test": "rrul",
    "path.buffer": "2bdp", "path.qdisc": "fq_codel", "path.mtu": 9000, "path.forward_delay": "5ms",
    "path.loss_correlation": "25%", "path.jitter": "10ms", "path.jitter_shape": "slotted",
    "path.reverse_buffer": "64KB",
    "flow.cc": "bbr3", "flow.count": 4, "flow.name": "backup", "flow.start": "2s",
    "flow.start_step": "100ms", "flow.stop": "30s", "flow.amount": "10MB", "flow.app_rate": "5mbit",
    "flow.direction": "down", "flow.rtt": "80ms", "flow.jitter_shape": "slotted", "flow.ecn": False,
    **{f"{kind}.station": "sta" for kind in ("flow", "probe", "page", "udp", "traffic")},
    "wifi.ampdu": {"VO": 0},
    "wifi.txop": {"VI": "0ms"}, "wifi.rts_above": 2000, "wifi.station.name": "laptop",
    "flow.enter": "wire", "flow.leave": "wire", "probe.enter": "wire", "probe.leave": "wire",
    "link.name": "wire", "link.kind": "wire", **{
        f"{link}.{key}": value
        for link in ("link", "link.reverse")
        for key, value in {
            "rate": "50mbit", "delay": "10ms", "buffer": "64KB", "loss_correlation": "25%",
            "rate_steps": [["10s", "5mbit"], ["20s", "50mbit"]],
            "delay_steps": [["10s", "30ms"]], "outage": [["30s", "2s"]],
            "rate_trace": "traces/cellular.trace", "delay_trace": "traces/leo.delay",
            "duplicate_correlation": "25%", "reorder_correlation": "25%", "wifi_jitter": "7ms",
            "gemodel.p": "0.5%", "gemodel.r": "25%", "hold.time": "5ms", "hold.packets": 16,
            "policer.rate": "10mbit", "policer.burst": "30KB",
        }.items()
    },
    "flow.pattern.on": "2s", "flow.pattern.off": "1s", "flow.pattern.write": "64KB",
    "flow.pattern.every": "100ms",
    "page.cc": "bbr3", "page.name": "news", "page.start": "1s", "page.stop": "50s",
    "page.enter": "wire", "page.leave": "wire", "page.protocol": "http2", "page.loads": 10,
    "page.levels": [["60KB"], ["20KB", "200KB"]], "page.think": "5ms", "page.pause": "1s",
    "page.lookup": "each",
    "udp.name": "call", "udp.start": "1s", "udp.stop": "50s", "udp.enter": "wire",
    "udp.leave": "wire", "udp.rate": "64kbit", "udp.frames": 30.0, "udp.deadline": "100ms",
    "udp.on": "1s", "udp.off": "2s",
    "traffic.cc": "bbr3", "traffic.name": "search", "traffic.load": 0.5,
    "traffic.flows_per_s": 300.0, "traffic.sizes": "websearch", "traffic.trace": "mawi",
    "traffic.senders": 2, "traffic.rtts": ["10ms", "30ms"], "traffic.start": "1s",
    "traffic.stop": "50s", "traffic.enter": "wire", "traffic.leave": "wire",
    "probe.name": "ping", "probe.start": "1s", "cc.NAME.base": "cubic",
}  # fmt: skip


_HEAD = """# Scenario reference

`fullpipe schema --markdown` makes this page from the models that check scenarios; `fullpipe schema`
prints their JSON schema. [`scenarios/`](../scenarios) has examples.

A scenario is a TOML file. Quantities are text with a unit:

| type | units | example |
|---|---|---|
| rate | bit, kbit, mbit, gbit (powers of ten) | `"1.5gbit"` |
| time | ns, us, ms, s, min | `"250us"` |
| size | B, KB, MB, GB (powers of two; KiB, MiB, GiB are the same) | `"64KB"` |
| buffer | bdp (rate x base RTT), pkt, or a size | `"0.5bdp"` |
| spread | pkt (what a packet takes at the bottleneck), or a time | `"1pkt"` |
| ratio | a number, or % | `"0.1%"` |
| DSCP | a name, or its number | `"EF"` |

Engines are `sim`, `vm`, `live`, and `live` between two hosts (`--peer`), which runs over the real
network between them. Where the default is "-" and the description names none, the key has no effect
unless it is given.
"""

_QDISC_OPTIONS = """## Options of queue disciplines

The table `qdisc_options` holds options of the discipline that `qdisc` names, and
`reverse_qdisc_options` those of `reverse_qdisc`. Options of other disciplines are refused. Defaults
are those of tc and Linux.
"""


def markdown() -> str:
    """The reference as Markdown."""
    parts = [_HEAD]
    for title, model, prefix in _sections():
        parts += [f"## {title}\n", *_section(model, prefix)]
    parts.append(_QDISC_OPTIONS)
    for name, discipline in DISCIPLINES.items():
        parts += [f"### `{name}`\n", *_section(discipline.options, f"qdisc_options.{name}.")]
    return "\n".join(parts)


def examples() -> Iterator[tuple[str, Any]]:
    """(key, example value) of every key of every section; the section of a discipline's options is
    `qdisc_options.NAME`."""
    options = ((row.options, f"qdisc_options.{name}.") for name, row in DISCIPLINES.items())
    for model, prefix in (*((model, prefix) for _, model, prefix in _sections()), *options):
        for name, field in _keys(model):
            yield prefix + name, _example(prefix + name, field)


def _sections() -> Iterator[tuple[str, type[BaseModel], str]]:
    yield "The file itself", Scenario, ""
    yield from _below(Scenario, "")


def _below(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel], str]]:
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        if inner is None:
            continue
        if f"{prefix}{name}" == "link.wifi" or issubclass(inner, Options):
            continue  # as [wifi]; and as `qdisc_options`, which has a section of its own
        kind = get_origin(field.annotation)
        key = f"{prefix}{name}" + (".NAME" if kind is dict else "")
        title = f"[[{key}]]" if kind is list else f"[{key}]"
        yield f"`{title}`", inner, f"{key}."
        yield from _below(inner, f"{key}.")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a section is checked by; None for a plain key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_of(inner) for inner in get_args(annotation))
    return next((model for model in found if model is not None), None)


def _keys(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """The plain keys of a section, those that must be given first."""
    plain = [item for item in model.model_fields.items() if _model_of(item[1].annotation) is None]
    return sorted(plain, key=lambda item: not item[1].is_required())


def _section(model: type[BaseModel], prefix: str) -> Iterator[str]:
    yield " ".join((model.__doc__ or "").split()) + "\n"
    if model.model_fields:
        yield _table(model, prefix)


def _table(model: type[BaseModel], prefix: str) -> str:
    lines = [
        "| key | type | default | range | engines | description | example |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, field in _keys(model):
        key = prefix + name
        type_name, limits = _type(field)
        cells = [
            f"`{name}`", type_name, _default(field), limits, _engines(key),
            field.description or "", f"`{name} = {_toml(_example(key, field))}`",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _engines(key: str) -> str:
    is_simulated = key.startswith("wifi.") or key.endswith(".station")
    if key.startswith(("page.", "udp.")) and not is_simulated:
        return "all but two hosts; vm, live: one link"
    is_link = key.startswith(("link.", "traffic.", "qdisc_options.")) or key.endswith(
        (".enter", ".leave")
    )
    return ENGINES.get(key, "sim" if is_simulated else "all but two hosts" if is_link else "all")


def _type(field: FieldInfo) -> tuple[str, str]:
    """(name of the type, range)."""
    quantity, kind = _quantity(field), _plain_type(field.annotation)
    name = _type_name(field.annotation, field.metadata)
    if quantity is not None and (quantity in field.metadata or get_origin(kind) is not tuple):
        return name, quantity.limits
    choices = [str(value) for value in _choices(field.annotation)]
    if choices:
        return name, ", ".join(f"`{value}`" for value in choices)
    limits = {type(item): item for item in field.metadata}
    least, most = limits.get(annotated_types.Ge), limits.get(annotated_types.Le)
    above = limits.get(annotated_types.Gt)
    shortest, longest = limits.get(annotated_types.MinLen), limits.get(annotated_types.MaxLen)
    if least is not None and most is not None:
        return name, f"{least.ge} to {most.le}"
    if above is not None and most is not None:
        return name, f"above {above.gt}, to {most.le}"
    if shortest is not None and longest is not None:
        return name, f"{shortest.min_length} to {longest.max_length} characters"
    return name, ""


def _type_name(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What people call a type; `metadata` are the annotations of the whole."""
    quantity = next((item for item in metadata if isinstance(item, Quantity)), None)
    if quantity is not None:
        return quantity.name
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(inner[0], inner[1:])
    if origin in (Union, types.UnionType):
        names = (_type_name(one) for one in inner if one is not type(None))
        return " or ".join(dict.fromkeys(names))
    if origin is Literal:
        return _type_name(type(inner[0]))
    if origin is list:
        return f"list of {_type_name(inner[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_type_name, inner))}]"
    if origin is dict:
        return f"table of {_type_name(inner[1])}"
    return {int: "number", float: "number", bool: "true or false", str: "text"}[annotation]


def _choices(annotation: Any) -> list[Any]:
    """The values that a type lists."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return [value for one in get_args(annotation) for value in _choices(one)]
    return []


def _plain_type(annotation: Any) -> Any:
    """The type without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(inner for inner in get_args(annotation) if inner is not type(None))
    return annotation


def _quantity(field: FieldInfo) -> Quantity | None:
    """The quantity that a field holds, by itself or in a list or a table."""
    found = [*field.metadata]
    for inner in get_args(field.annotation):
        found += getattr(inner, "__metadata__", ())
    return next((item for item in found if isinstance(item, Quantity)), None)


class _WithUnits(GenerateJsonSchema):
    """Writes defaults as a file does."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        quantity = QUANTITIES.get(found.get("format", ""))
        if quantity and found["default"] is not None:
            found["default"] = quantity.written(schema["default"])
        return found


def json_schema() -> dict[str, Any]:
    """The JSON schema of scenario files."""
    return Scenario.model_json_schema(schema_generator=_WithUnits)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.default
    quantity = _quantity(field)
    if value is PydanticUndefined or value is None or value == {} or (quantity and value == []):
        return "-"
    return f"`{quantity.written(value)}`" if quantity else f"`{_toml(value)}`"


def _example(key: str, field: FieldInfo) -> Any:
    if key in EXAMPLES:
        return EXAMPLES[key]
    quantity, value = _quantity(field), field.default
    known = value is not PydanticUndefined and value is not None
    if quantity is not None:
        return quantity.written(value) if known and value else quantity.example
    plain = _plain_type(field.annotation)
    if get_origin(plain) is Literal:
        return get_args(plain)[-1]
    if plain is bool:
        return not value
    if get_origin(plain) is dict:
        return {"46": 1}
    return value if known else 1


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"
