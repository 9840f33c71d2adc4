"""The keys of everything that sends packets: its name, its start, and its place in the network."""

from __future__ import annotations

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Dscp, Section, Time

#: Of names in tables and plots.
NAME_PATTERN = r"^[A-Za-z0-9._+:-]+$"


class Routed(Section):
    """A flow, page, stream, group of flows or probe."""

    name: str | None = Field(
        None,
        min_length=1,
        max_length=60,
        pattern=NAME_PATTERN,
        description="name in tables and plots; default: such as bbr3.1, page.1 or ping.1",
    )
    start: Time = Field(0, description="when it starts")
    dscp: Dscp = Field(0, description="DSCP of its packets, ACKs and answers included")
    station: str | None = Field(
        None, description="with Wi-Fi: the name of its station; default: the first station"
    )
    enter: str | None = Field(
        None, description="name of the first link of its route; default: the first link"
    )
    leave: str | None = Field(
        None, description="name of the last link of its route; default: the last link"
    )


class Hosted(Routed):
    """What runs on hosts of its choice."""

    host: int = Field(
        0,
        ge=0,
        le=255,
        description="number of the host at its near end, where up flows start; what has the same "
        "number shares a host and its address",
    )
    far_host: int | None = Field(
        None,
        ge=0,
        le=255,
        description="number of the host at its far end; default: that of host, so that different "
        "hosts have different servers",
    )

    @property
    def host_numbers(self) -> tuple[int, int]:
        """Of its near and its far host."""
        return self.host, self.host if self.far_host is None else self.far_host


class Sender(Hosted):
    """What stops at a time."""

    stop: Time | None = Field(
        None, description="when it starts nothing new and writes no more; default: at the end"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Sender:
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop: must be after start")
        return self
