"""What the options of all queue disciplines have in common. Knows no discipline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fullpipe.base import units
from fullpipe.scenario.fields import SIZE, TIME, Section
from fullpipe.scenario.link_layer import LinkLayer

MS = 10**6
#: Sizes that kernels count in 32 bits.
Size32 = Annotated[int, SIZE.between(1, 2**31)]
#: Between two updates of a probability, which kernels count in whole microseconds: DualPI2 refuses
#: 0 (dualpi2_policy), and PIE would make none (pie_timer()).
Update = Annotated[int, TIME.between(1000, units.MAX_TIME_NS)]


@dataclass(frozen=True)
class Port:
    """What a queue serves, and how long it may get; both limits are None where the kernel derives
    one. `packet_bytes`: a full packet on the wire."""

    rate_bps: int
    packet_bytes: int
    ecn: bool
    limit_bytes: int | None
    limit_packets: int | None


def set_only(**parameters: Any) -> dict[str, Any]:
    """The parameters that are set: plans name no default of what came later, so that their hashes
    stay."""
    return {name: value for name, value in parameters.items() if value is not None}


class Options(Section):
    """Options of one queue discipline. Defaults are those of tc and Linux."""

    @property
    def keeps_rate(self) -> bool:
        """Whether the discipline shapes to the link's rate itself; htb does for the others."""
        return False

    def over(self, layer: LinkLayer) -> Options:
        """The same over a link layer, for a discipline that counts it."""
        return self

    def limit_bytes(self, port: Port) -> int | None:
        """The limit in bytes that engines get."""
        return port.limit_bytes

    def parameters(self, port: Port) -> dict[str, Any]:
        """The parameters that engines get (`Aqm` of crates/fullpipe-net/src/queue/mod.rs)."""
        return {}
