"""The queue of a path or of a link's direction: its keys, and what engines get of it.

Knows no discipline beyond its row of the registry.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from fullpipe.base import units
from fullpipe.base.packets import wire_bytes
from fullpipe.base.refusals import COMPLETE, unknown_key
from fullpipe.scenario.fields import Buffer, Rate, Section
from fullpipe.scenario.link_layer import ABOUT, Framing, LinkLayer, Overhead, link_layer
from fullpipe.scenario.qdiscs.options import Options, Port
from fullpipe.scenario.qdiscs.registry import DISCIPLINES


def _read_options(
    written: Any, _read: ValidatorFunctionWrapHandler, info: ValidationInfo
) -> Options:
    """Reads `X_options` as options of the discipline that the key `X` names."""
    name = info.data.get((info.field_name or "").removesuffix("_options"))
    if name is None:
        return Options()  # the name was refused already
    options = DISCIPLINES[name].options
    if isinstance(written, dict) and not written.keys() <= options.model_fields.keys():
        unknown = [key for key in written if key not in options.model_fields]
        raise ValidationError.from_exception_data(
            name,
            [
                InitErrorDetails(
                    type=PydanticCustomError(COMPLETE, _why_not(str(key), name)),
                    loc=(str(key),),
                    input=written[key],
                )
                for key in unknown
            ],
        )
    return options.model_validate(written)


def _why_not(key: str, name: str) -> Any:
    """Why a discipline has no option of this name, and which one has."""
    having = [owner for owner, row in DISCIPLINES.items() if key in row.options.model_fields]
    if having:
        verb = "has" if len(having) == 1 else "have"
        return f"not an option of {name}; {', '.join(having)} {verb} it"
    options = list(DISCIPLINES[name].options.model_fields)
    return unknown_key(key, options) if options else f"unknown key; {name} has no options"


# Pydantic reads these types from the registry; a type checker cannot.
if TYPE_CHECKING:
    QdiscName = str
    QdiscOptions = Options
else:
    QdiscName = Literal[tuple(DISCIPLINES)]
    QdiscOptions = Annotated[
        Union[tuple(row.options for row in DISCIPLINES.values())],  # noqa: UP007
        WrapValidator(_read_options),
    ]


class Queue(Section):
    """A queue and the rate at which it is served."""

    rate: Rate | None = Field(None, description="rate on the wire; default: not limited")
    buffer: Buffer | None = Field(
        None, description="limit of the queue; default: 1bdp, or what Linux has (queues.md)"
    )
    qdisc: QdiscName = Field("fifo", description="queue discipline")
    qdisc_options: QdiscOptions = Field(
        {}, validate_default=True, description="options of the discipline"
    )
    overhead: Overhead | None = Field(None, description=f"{ABOUT}; default: an Ethernet header")
    mpu: int | None = Field(
        None, ge=0, le=256, description="least size of a packet on the link, in bytes; default: 0"
    )
    framing: Framing | None = Field(
        None,
        description="link-layer framing: atm has 53-byte cells that carry 48, ptm 65 bytes for "
        "64; default: none",
    )

    @property
    def link_layer(self) -> LinkLayer | None:
        """What the link layer adds to packets; None where nothing is written."""
        return link_layer(self.overhead, self.mpu, self.framing)


def resolve_queue(
    name: str,
    options: Options,
    buffer: units.Buffer | None,
    rate_bps: int,
    rtt_ns: int,
    mtu_bytes: int,
    ecn: bool,
    layer: LinkLayer | None = None,
) -> dict[str, Any]:
    """The queue that engines get (`Qdisc` of crates/fullpipe-net/src/queue/mod.rs) at a link of
    this rate and link layer, which a discipline that shapes counts itself; a buffer in BDP is one
    of `rtt_ns`."""
    if layer is not None:
        options = options.over(layer)
    packet_bytes = wire_bytes(mtu_bytes)
    limit_bytes, limit_packets = _limits(name, buffer, rate_bps, rtt_ns, packet_bytes)
    port = Port(rate_bps, packet_bytes, ecn, limit_bytes, limit_packets)
    return {
        "limit_bytes": options.limit_bytes(port),
        "limit_packets": limit_packets,
        "aqm": {"kind": name, **options.parameters(port)},
    }


def _limits(
    name: str, buffer: units.Buffer | None, rate_bps: int, rtt_ns: int, packet_bytes: int
) -> tuple[int | None, int | None]:
    """The limit in bytes or in packets, as the discipline counts."""
    unit = DISCIPLINES[name].unit
    buffer = buffer or DISCIPLINES[name].buffer
    if buffer is None:
        return None, None
    limit_bytes = buffer.limit_bytes(rate_bps, rtt_ns)
    if limit_bytes is None:
        packets = int(buffer.value)
        return (packets * packet_bytes, None) if unit == "bytes" else (None, packets)
    if unit == "packets":
        return None, math.ceil(limit_bytes / packet_bytes)
    return limit_bytes, None
