"""What a link layer adds to packets, in the words of tc-cake(8)."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator

Framing = Literal["none", "atm", "ptm"]


class LinkLayer(NamedTuple):
    """Bytes in place of the Ethernet header (None: a frame as it is), the least size, and the
    framing."""

    overhead: int | None
    mpu: int = 0
    framing: Framing = "none"

    def planned(self) -> dict[str, Any]:
        """What a plan holds of it (`Overhead` of crates/fullpipe-net/src/link/framing.rs)."""
        return {"bytes": self.overhead, "mpu_bytes": self.mpu, "framing": self.framing}


#: tc-cake(8), "Manual overhead specification" and "Failsafe overhead keywords".
LINK_LAYERS = {
    "raw": LinkLayer(None),
    "conservative": LinkLayer(48, 0, "atm"),
    "ipoa-vcmux": LinkLayer(8, 0, "atm"),
    "ipoa-llcsnap": LinkLayer(16, 0, "atm"),
    "bridged-vcmux": LinkLayer(24, 0, "atm"),
    "bridged-llcsnap": LinkLayer(32, 0, "atm"),
    "pppoa-vcmux": LinkLayer(10, 0, "atm"),
    "pppoa-llc": LinkLayer(14, 0, "atm"),
    "pppoe-vcmux": LinkLayer(32, 0, "atm"),
    "pppoe-llcsnap": LinkLayer(40, 0, "atm"),
    "pppoe-ptm": LinkLayer(30, 0, "ptm"),
    "bridged-ptm": LinkLayer(22, 0, "ptm"),
    "ethernet": LinkLayer(38, 84),
    "ether-vlan": LinkLayer(42, 84),
    "docsis": LinkLayer(18, 64),
}
_LEAST, _MOST = -64, 256


def _read(written: Any) -> Any:
    """A number of bytes or a word. Raises ValueError for anything else."""
    if isinstance(written, str):
        if written in LINK_LAYERS:
            return written
        near = difflib.get_close_matches(written.lower(), LINK_LAYERS, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"{meant}words are {', '.join(LINK_LAYERS)}")
    if isinstance(written, int) and not isinstance(written, bool) and _LEAST <= written <= _MOST:
        return written
    raise ValueError(f"must be a whole number from {_LEAST} to {_MOST}, or a word such as docsis")


#: A number of bytes, or a word.
Overhead = Annotated[int | str, BeforeValidator(_read)]
ABOUT = (
    "bytes that the link layer adds to an IP packet, or one of CAKE's words for a link, which "
    "says mpu and framing too"
)


def link_layer(
    overhead: int | str | None, mpu: int | None, framing: Framing | None
) -> LinkLayer | None:
    """The link layer of these three keys, of which the last two go before a keyword's own; None
    where none is written."""
    if overhead is None and mpu is None and framing is None:
        return None
    base = LINK_LAYERS[overhead] if isinstance(overhead, str) else LinkLayer(overhead)
    return LinkLayer(
        base.overhead,
        base.mpu if mpu is None else mpu,
        base.framing if framing is None else framing,
    )
