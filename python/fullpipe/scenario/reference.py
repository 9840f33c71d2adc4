"""The scenario reference, docs/reference/scenario.md, and the JSON schema, made from the models
that check scenarios. Only what engines refuse and some examples are listed here."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined
from pydantic_core.core_schema import WithDefaultSchema

from fullpipe._native import DEFAULT_KERNEL
from fullpipe.base.markdown import filled
from fullpipe.scenario.fields import QUANTITIES, Quantity
from fullpipe.scenario.model import BESIDE_LINKS, Scenario
from fullpipe.scenario.qdiscs.options import Options
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

#: Characters of a description in a table: more is a note below it.
_CELL = 120
#: Of the JSON schemas.
DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: The engines that take a key, where not all take every value (crates/fullpipe-agent/src/check.rs;
#: between two hosts, the path is a real network).
ENGINES: dict[str, str] = {
    "rtt_spread": "all but two hosts",
    "path.rate": "all; vm, live: from 8kbit",
    "path.qdisc": "all; between two hosts: fifo",
    "path.loss": "all but two hosts",
    "path.reverse_loss": "all but two hosts",
    "path.jitter": "all but two hosts",
    **dict.fromkeys(
        (
            "link.wifi_jitter",
            "link.gemodel.good",
            "link.gemodel.bad",
            "link.hold.packets",
            "link.loss_marks",
        ),
        "sim",
    ),
    "link.rate_trace": "all but two hosts; vm, live: as steps of 20ms",
    "link.kind": "all but two hosts; wifi: sim",
    "flow.cc": "all; kernel:NAME: vm, live; QUIC stacks: sim",
    "flow.rtt": "all but two hosts",
    "flow.jitter": "all but two hosts",
    "traffic.configuration": "all but two hosts",
    "probe.kind": "all; between two hosts: ping",
    "host.tsq": "sim; vm, live: 1ms",
    "host.ack_policy": "all; every_second: sim",
    "host.tcp": f"sim; vm, live: {DEFAULT_KERNEL}, the kernel's own",
    **dict.fromkeys(
        ("qdisc_options.fq.kernel", "qdisc_options.codel.kernel", "qdisc_options.fq_codel.kernel"),
        "sim; vm, live: the kernel's own",
    ),
    "flow.tcp": f"sim; vm, live: {DEFAULT_KERNEL}, the kernel's own",
    "host.cc_facts": "sim, vm with a module; else stock",
    **dict.fromkeys(
        (
            "host.receive_aggregation",
            "host.packet_cost",
            "host.ack_cost",
            "host.send_cost",
            "host.handshake_cost",
            "host.reader_pause",
        ),
        "sim; vm, live: 0",
    ),
    "host.reader_pause_spread": "sim",
    "host.reader_pause_every": "sim",
    "host.program_timer": "sim",
    "host.rate_restart": "sim; vm, live: unacknowledged",
    "host.sysctl.tcp_min_tso_segs": "all but two hosts; vm, live: with kernel:NAME",
    **dict.fromkeys(
        (
            f"host.sysctl.{name}"
            for name in (
                "tcp_slow_start_after_idle",
                "tcp_notsent_lowat",
                "tcp_tso_rtt_log",
                "tcp_pacing_ss_ratio",
                "tcp_pacing_ca_ratio",
            )
        ),
        "all but two hosts",
    ),
    **dict.fromkeys(
        (
            f"host.sysctl.{name}"
            for name in (
                "tcp_timestamps",
                "tcp_sack",
                "tcp_dsack",
                "tcp_recovery",
                "tcp_early_retrans",
                "tcp_reordering",
                "tcp_max_reordering",
                "tcp_frto",
                "tcp_limit_output_bytes",
                "tcp_tso_win_divisor",
                "tcp_autocorking",
                "tcp_moderate_rcvbuf",
                "tcp_window_scaling",
                "tcp_comp_sack_nr",
                "tcp_comp_sack_delay_ns",
            )
        ),
        "vm, live",
    ),
}
#: Examples that are more telling than the default or the type; those with a leading dot are for all
#: keys of that name.
EXAMPLES: dict[str, Any] = {
    "version": 1,
    "name": "bufferbloat at home",
    "duration": "60s",
    "warmup": "5s",
    "seed": 7,
    "flent_test": "rrul",
    ".start": "1s",
    ".stop": "50s",
    ".station": "sta",
    ".enter": "wire",
    "flow.tcp": "6.1",
    ".kernel": "6.1",
    ".leave": "wire",
    ".cc": "bbr3",
    ".jitter_shape": "slotted",
    ".loss_correlation": "25%",
    "path.buffer": "2bdp",
    "path.qdisc": "fq_codel",
    "path.mtu": 9000,
    "path.forward_delay": "5ms",
    "path.jitter": "10ms",
    "path.reverse_buffer": "64KB",
    "wifi.ampdu": {"VO": 0},
    "wifi.txop": {"VI": "0ms"},
    "wifi.rts_above": 2000,
    "wifi.station.name": "laptop",
    "link.name": "wire",
    "link.kind": "wire",
    "link.rate": "50mbit",
    "link.delay": "10ms",
    "link.buffer": "64KB",
    "link.rate_steps": [["10s", "5mbit"], ["20s", "50mbit"]],
    "link.delay_steps": [["10s", "30ms"]],
    "link.outage": [["30s", "2s"]],
    "link.rate_trace": "traces/cellular.trace",
    "link.delay_trace": "traces/leo.delay",
    "link.duplicate_correlation": "25%",
    "link.reorder_correlation": "25%",
    "link.wifi_jitter": "7ms",
    "link.sqm.upload": "19mbit",
    "link.sqm.download": "285mbit",
    "link.sqm.script": "layer_cake",
    "link.gemodel.p": "0.5%",
    "link.gemodel.r": "25%",
    "link.gemodel.good": "10s",
    "link.gemodel.bad": "300ms",
    "link.hold.time": "5ms",
    "link.hold.packets": 16,
    "link.policer.rate": "10mbit",
    "link.policer.burst": "30KB",
    "link.delay_limit": 1000,
    "link.delay_jitter": "5ms",
    "link.delay_distribution": "normal",
    "flow.count": 4,
    "flow.name": "backup",
    "flow.start_step": "100ms",
    "flow.amount": "10MB",
    "flow.app_rate": "5mbit",
    "flow.direction": "down",
    "flow.rtt": "80ms",
    "flow.ecn": False,
    "flow.pattern.on": "2s",
    "flow.pattern.off": "1s",
    "flow.pattern.every": "100ms",
    "page.name": "news",
    "page.protocol": "http2",
    "page.loads": 10,
    "page.think": "5ms",
    "page.levels": [["60KB"], ["20KB", "200KB"]],
    "page.pause": "1s",
    "page.lookup": "each",
    "udp.name": "call",
    "udp.rate": "64kbit",
    "udp.frames": 30.0,
    "udp.deadline": "100ms",
    "udp.on": "1s",
    "udp.off": "2s",
    "traffic.name": "search",
    "traffic.load": 0.5,
    "traffic.flows_per_s": 300.0,
    "traffic.sizes": "websearch",
    "traffic.trace": "mawi",
    "traffic.senders": 2,
    "traffic.rtts": ["10ms", "30ms"],
    "probe.name": "ping",
    "cc.NAME.base": "cubic",
}

_HEAD = """# Scenario reference

`fullpipe schema --markdown` makes this page from the models that check scenarios; `fullpipe schema`
prints their JSON schema. The folder `scenarios` has examples.

`version = 1` names the version of this format. Later releases read it too; a file in another
version is refused by name. An editor with a TOML language server completes and checks keys if the
file's first line is `#:schema PATH`, the path of what `fullpipe schema` printed; in a checkout that
is `schema/scenario.json`.

A scenario is a TOML file. Quantities are text with a unit:

| type | units | example |
|---|---|---|
| rate | bit, kbit, mbit, gbit (powers of ten) | `"1.5gbit"` |
| time | ns, us, ms, s, min | `"250us"` |
| size | B, KB, MB, GB: powers of 1024, in any case; KiB, MiB, GiB are the same | `"64KB"` |
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


class _Section(NamedTuple):
    """A table of a scenario; `same`: an earlier one that has all its keys."""

    title: str
    model: type[BaseModel]
    prefix: str
    same: _Section | None = None

    def text(self, level: str = "##") -> Iterator[str]:
        """Its Markdown, in parts."""
        yield f"{level} {self.title}\n"
        yield filled(" ".join((self.model.__doc__ or "").split())) + "\n"
        if self.same:
            more = self.same.model.model_fields.keys() - self.model.model_fields.keys()
            but = f", without {', '.join(f'`{key}`' for key in sorted(more))}" if more else ""
            yield f"Keys as in {self.same.title}{but}.\n"
        elif self.model.model_fields:
            yield _table(self.model, self.prefix)


def markdown() -> str:
    """The reference as Markdown."""
    parts = [_HEAD, *(text for section in _sections() for text in section.text())]
    return "\n".join(
        [
            *parts,
            _QDISC_OPTIONS,
            *(text for section in _qdisc_sections() for text in section.text("###")),
        ]
    )


def examples() -> Iterator[tuple[str, Any]]:
    """(key, example value) of every key that the reference lists."""
    for section in (*_sections(), *_qdisc_sections()):
        for name, field in _keys(section.model) if section.same is None else ():
            yield section.prefix + name, _example(section.prefix + name, field)


def _sections() -> list[_Section]:
    sections = [_Section("The file itself", Scenario, "")]
    _add_below(sections, Scenario, "")
    return sections


def _qdisc_sections() -> list[_Section]:
    return [
        _Section(f"`{name}`", row.options, f"qdisc_options.{name}.")
        for name, row in DISCIPLINES.items()
    ]


def _add_below(sections: list[_Section], model: type[BaseModel], prefix: str) -> None:
    """Adds the tables within one, but for options of disciplines."""
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        if inner is None or issubclass(inner, Options):
            continue
        kind = get_origin(field.annotation)
        key = f"{prefix}{name}" + (".NAME" if kind is dict else "")
        title = f"`[[{key}]]`" if kind is list else f"`[{key}]`"
        same = (section for section in sections if issubclass(section.model, inner))
        sections.append(_Section(title, inner, f"{key}.", next(same, None)))
        if sections[-1].same is None:
            _add_below(sections, inner, f"{key}.")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a section is checked by; None for a plain key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_of(inner) for inner in get_args(annotation))
    return next((model for model in models if model is not None), None)


def _keys(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """The plain keys of a section, those that must be given first."""
    plain = [item for item in model.model_fields.items() if _model_of(item[1].annotation) is None]
    return sorted(plain, key=lambda item: not item[1].is_required())


def _table(model: type[BaseModel], prefix: str) -> str:
    lines = [
        "| key | type | default | range | engines | example | description |",
        "|---|---|---|---|---|---|---|",
    ]
    notes = []
    for name, field in _keys(model):
        key = prefix + name
        type_name, limits = _type(field)
        description, note = _short(field.description or "")
        if note:
            notes.append(filled(f"More on `{name}`: {note}.") + "\n")
        cells = [
            f"`{name}`",
            type_name,
            _default(field),
            limits,
            _engines(key),
            f"`{name} = {_toml(_example(key, field))}`",
            description,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(["\n".join(lines) + "\n", *notes])


def _short(description: str) -> tuple[str, str]:
    """What a table says of a key, and what is left for a note: whole clauses."""
    if len(description) <= _CELL:
        return description, ""
    below = " (more below)"
    head = description[: _CELL - len(below)].rpartition("; ")[0]
    # A single long clause goes below as a whole.
    return head + below, description[len(head) + 2 :] if head else description


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
    limits = {type(item): item for item in field.metadata or _inner_metadata(field.annotation)}
    least, most = limits.get(annotated_types.Ge), limits.get(annotated_types.Le)
    above = limits.get(annotated_types.Gt)
    shortest, longest = limits.get(annotated_types.MinLen), limits.get(annotated_types.MaxLen)
    if least is not None and most is not None:
        return name, f"{least.ge} to {most.le}"
    if above is not None and most is not None:
        return name, f"above {above.gt}, to {most.le}"
    if least is not None:
        below = limits.get(annotated_types.Lt)
        return name, f"{least.ge} to {below.lt - 1}" if below else f"at least {least.ge}"
    if shortest is not None and longest is not None:
        return name, f"{shortest.min_length} to {longest.max_length} characters"
    return name, ""


def _inner_metadata(annotation: Any) -> list[Any]:
    """The bounds of the numbers in a list or a table."""
    for inner in get_args(annotation):
        for item in getattr(inner, "__metadata__", ()):
            if isinstance(item, FieldInfo) and item.metadata:
                return item.metadata
        if metadata := _inner_metadata(inner):
            return metadata
    return []


def _type_name(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What people call a type; `metadata` are the annotations of the whole."""
    quantity = next((item for item in metadata if isinstance(item, Quantity)), None)
    if quantity is not None:
        return quantity.name
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(inner[0], inner[1:])
    if origin in (Union, types.UnionType):
        names = (_type_name(part) for part in inner if part is not type(None))
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
        return [value for part in get_args(annotation) for value in _choices(part)]
    return []


def _plain_type(annotation: Any) -> Any:
    """The type without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(inner for inner in get_args(annotation) if inner is not type(None))
    return annotation


def _quantity(field: FieldInfo) -> Quantity | None:
    """The quantity that a field holds, by itself or in a list or a table."""
    metadata = [*field.metadata]
    for inner in get_args(field.annotation):
        metadata += getattr(inner, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, Quantity)), None)


class _WithUnits(GenerateJsonSchema):
    """Writes defaults as a file does."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        document = super().default_schema(schema)
        quantity = QUANTITIES.get(document.get("format", ""))
        if quantity and document["default"] is not None:
            document["default"] = quantity.written(schema["default"])
        return document


def json_schema() -> dict[str, Any]:
    """The JSON schema of scenario files: every key, its type and its range. What must hold among
    keys only the models check."""
    schema = Scenario.model_json_schema(schema_generator=_WithUnits)
    keys = schema["properties"]
    # A network is [path], or a row of [[link]] beside which [path] holds what is left.
    left = {key: schema["$defs"]["Path"]["properties"][key] for key in BESIDE_LINKS}
    beside = {"type": "object", "properties": left, "additionalProperties": False}
    keys["path"] = {"anyOf": [{"$ref": "#/$defs/Path"}, beside]}
    schema["required"].remove("path")
    network = [{"required": [key]} for key in ("path", "link")]
    traffic = [{"required": [key]} for key in ("flow", "page", "udp", "traffic")]
    return {
        "$schema": DIALECT,
        **schema,
        "title": "A scenario of fullpipe",
        "allOf": [{"anyOf": network}, {"anyOf": traffic}],
    }


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.default
    quantity = _quantity(field)
    if value is PydanticUndefined or value is None or value == {} or (quantity and value == []):
        return "-"
    return f"`{quantity.written(value)}`" if quantity else f"`{_toml(value)}`"


def _example(key: str, field: FieldInfo) -> Any:
    for listed in (key, f".{key.rpartition('.')[2]}"):
        if listed in EXAMPLES:
            return EXAMPLES[listed]
    quantity, value = _quantity(field), field.default
    has_default = value is not PydanticUndefined and value is not None
    if quantity is not None:
        return quantity.written(value) if has_default and value else quantity.example
    plain = _plain_type(field.annotation)
    if get_origin(plain) is Literal:
        return get_args(plain)[-1]
    if plain is bool:
        return not value
    if get_origin(plain) is dict:
        return {"46": 1}
    return value if has_default else 1


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"
