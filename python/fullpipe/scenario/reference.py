"""The scenario reference for people, from the models that check scenarios: nothing is listed twice
but what engines refuse. Knows no engine."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined
from pydantic_core.core_schema import WithDefaultSchema

from fullpipe._native import DEFAULT_KERNEL
from fullpipe.scenario.fields import QUANTITIES, Quantity
from fullpipe.scenario.model import Scenario

#: Where not every engine carries every value (crates/fullpipe-agent/src/check.rs; two hosts: what
#: a real network has of its own).
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
#: Examples that say more than a default or a type.
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


_HEAD = """# What a scenario may hold

Made by `fullpipe schema --markdown` from the models that check scenarios; a test holds this page
against them. `fullpipe schema` prints the JSON schema of the same. [`scenarios/`](../scenarios) has
examples to begin with.

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

Engines: `sim`, `vm`, `live`, and `live` between two hosts (`--peer`), which has no path but the
real one; "all" is all of them. Where the default is "-", the words after the semicolon in "what it
is" say what holds.
"""


def markdown() -> str:
    """The reference as Markdown: every section, every key."""
    parts = [_HEAD]
    for title, model, prefix in _sections():
        about = " ".join((model.__doc__ or "").split())
        parts += [f"## {title}\n", f"{about}\n", _table(model, prefix)]
    return "\n".join(parts)


def examples() -> Iterator[tuple[str, Any]]:
    """(key, example value) of every key of every section."""
    for _, model, prefix in _sections():
        for name, field in model.model_fields.items():
            if _model_of(field.annotation) is None:
                yield prefix + name, _example(prefix + name, field)


def _sections() -> Iterator[tuple[str, type[BaseModel], str]]:
    yield "The file itself", Scenario, ""
    yield from _below(Scenario, "")


def _below(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel], str]]:
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        if inner is None:
            continue
        if f"{prefix}{name}" == "link.wifi":
            continue  # as [wifi], which stands there already
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


def _table(model: type[BaseModel], prefix: str) -> str:
    lines = [
        "| key | type | default | range | engines | what it is | example |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, field in model.model_fields.items():
        if _model_of(field.annotation) is not None:
            continue
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
    is_link = key.startswith(("link.", "traffic.")) or key.endswith((".enter", ".leave"))
    usual = "sim" if is_simulated else "all but two hosts" if is_link else "all"
    return ENGINES.get(key, usual)


def _type(field: FieldInfo) -> tuple[str, str]:
    """(name of the type, range)."""
    quantity = _quantity(field)
    if quantity is not None:
        return quantity.name, quantity.limits
    plain = _plain_type(field.annotation)
    if get_origin(plain) is Literal:
        return "text", ", ".join(f"`{value}`" for value in get_args(plain))
    if get_origin(plain) is dict:
        return "table", ""
    names = {int: "number", float: "number", bool: "true or false", str: "text"}
    limits = {type(item): item for item in field.metadata}
    least, most = limits.get(annotated_types.Ge), limits.get(annotated_types.Le)
    shortest, longest = limits.get(annotated_types.MinLen), limits.get(annotated_types.MaxLen)
    text = ""
    if least is not None and most is not None:
        text = f"{least.ge} to {most.le}"
    elif shortest is not None and longest is not None:
        text = f"{shortest.min_length} to {longest.max_length} letters"
    return names.get(plain, "text"), text


def _plain_type(annotation: Any) -> Any:
    """The type without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(inner for inner in get_args(annotation) if inner is not type(None))
    return annotation


def _quantity(field: FieldInfo) -> Quantity | None:
    found = [*field.metadata]
    for inner in get_args(field.annotation):
        found += getattr(inner, "__metadata__", ())
    return next((item for item in found if isinstance(item, Quantity)), None)


class _WithUnits(GenerateJsonSchema):
    """Defaults as a file would write them, not as the program keeps them."""

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
    return f'"{value}"' if isinstance(value, str) else f"{value}"
