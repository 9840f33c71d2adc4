"""Common Applications Kept Enhanced: sch_cake."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Duration
from fullpipe.scenario.link_layer import (
    ABOUT,
    LINK_LAYERS,
    Framing,
    LinkLayer,
    Overhead,
    link_layer,
)
from fullpipe.scenario.qdiscs.options import MS, Options, Port


class Cake(Options):
    """Common Applications Kept Enhanced (sch_cake): a shaper, classes by DSCP, and fair queues by
    host and flow."""

    rtt: Duration = Field(100 * MS, description="nominal RTT, the interval of its CoDel")
    target: Duration | None = Field(
        None, description="acceptable standing queueing delay; default: a twentieth of rtt"
    )
    bandwidth: Literal["path", "unlimited"] = Field(
        "path", description="path: CAKE shapes to the link's rate, as on home routers; unlimited: "
        "htb shapes above CAKE"
    )  # fmt: skip
    tins: Literal["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"] = Field(
        "diffserv3", description="traffic classes by DSCP"
    )
    isolation: Literal[
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost",
        "triple-isolate",
    ] = Field("triple-isolate", description="which flows and hosts get fair shares")  # fmt: skip
    ack_filter: Literal["no", "filter", "aggressive"] = Field(
        "no", description="drops ACKs in the queue that a newer ACK makes redundant"
    )
    overhead: Overhead | None = Field(None, description=f"{ABOUT}; default: the link's")
    mpu: int | None = Field(
        None, ge=0, le=256, description="least size of a packet on the link, in bytes; default: "
        "the link's"
    )  # fmt: skip
    framing: Framing | None = Field(
        None, description="link-layer framing; atm: 53-byte cells that carry 48; ptm: 65 bytes "
        "for 64; default: the link's"
    )  # fmt: skip
    nat: bool = Field(
        False, description="tells hosts behind NAT apart; without effect, as nothing translates "
        "addresses here"
    )  # fmt: skip
    ingress: bool = Field(False, description="dropped packets count against the rate")
    autorate_ingress: bool = Field(
        False, description="sets the bandwidth by the rate at which packets arrive"
    )
    wash: bool = Field(False, description="clears the DSCP of all packets")
    split_gso: bool = Field(True, description="splits GSO packets; the simulator has none")

    @model_validator(mode="after")
    def _has_a_rate_to_set(self) -> Cake:
        if self.autorate_ingress and self.bandwidth != "path":
            raise ValueError('autorate_ingress: needs bandwidth = "path"')
        return self

    @property
    def keeps_rate(self) -> bool:
        return self.bandwidth == "path"

    def over(self, layer: LinkLayer) -> Cake:
        if not self.keeps_rate or link_layer(self.overhead, self.mpu, self.framing):
            return self
        return self.model_copy(update=layer._asdict())

    def parameters(self, port: Port) -> dict[str, Any]:
        layer = link_layer(self.overhead, self.mpu, self.framing) or LINK_LAYERS["raw"]
        return {
            "rtt_ns": self.rtt,
            "target_ns": self.target or max(self.rtt // 20, 1000),
            "shapes": self.keeps_rate,
            "tins": self.tins,
            "isolation": self.isolation,
            "ack_filter": self.ack_filter,
            "overhead_bytes": layer.overhead,
            "mpu_bytes": layer.mpu,
            "framing": layer.framing,
            "ingress": self.ingress,
            "autorate_ingress": self.autorate_ingress,
            "wash": self.wash,
            "split_gso": self.split_gso,
        }
