"""`[link.sqm]`: what sqm-scripts of OpenWrt set up at a router, as keys of its link.

From tohojo/sqm-scripts, src/defaults.sh, piece_of_cake.qos, layer_cake.qos and simplest.qos: CAKE
gets `nat`; of arriving packets DSCPs are ignored and cleared (IGNORE_DSCP_INGRESS and
ZERO_DSCP_INGRESS are 1); FQ-CoDel has 1001 packets.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fullpipe.base import units
from fullpipe.scenario.fields import Rate, Section


class Sqm(Section):
    """Shapers of both directions as sqm-scripts set them up, instead of `rate`, `qdisc`,
    `qdisc_options` and `buffer` of the link and of its reverse direction. The link's `overhead`
    counts in both."""

    upload: Rate = Field(description="rate of the forward direction, some 95 % of the line's")
    download: Rate = Field(description="rate of the reverse direction")
    script: Literal["piece_of_cake", "layer_cake", "simplest"] = Field(
        "piece_of_cake",
        description="piece_of_cake: CAKE with one class; layer_cake: with three for what is sent; "
        "simplest: FQ-CoDel below htb",
    )


_ONE_CLASS = {"tins": "besteffort", "nat": True}
_CAKE: dict[str, dict[str, Any]] = {
    "piece_of_cake": _ONE_CLASS,
    "layer_cake": {"tins": "diffserv3", "nat": True},
}


def expanded(link: dict[str, Any]) -> dict[str, Any]:
    """A link's document with the keys that its `sqm` stands for. Raises ValueError, beginning with
    the key, where the document has one of them too."""
    sqm = link.get("sqm")
    if not isinstance(sqm, dict):
        return link
    reverse = link.get("reverse", {})
    if not isinstance(reverse, dict):
        return link
    for prefix, document in (("", link), ("reverse.", reverse)):
        for key in ("rate", "rate_trace", "qdisc", "qdisc_options", "buffer"):
            if key in document:
                raise ValueError(f"{prefix}{key}: excludes sqm, which sets it; write one of them")
    queues = _queues(str(sqm.get("script", "piece_of_cake")))
    rates = [_rate(sqm.get(key)) for key in ("upload", "download")]
    return {**link, **rates[0], **queues[0], "reverse": {**reverse, **rates[1], **queues[1]}}


def _rate(written: Any) -> dict[str, Any]:
    """The key; none where it is wrong, which is refused where the user wrote it."""
    try:
        units.parse_rate(written)
    except units.UnitError:
        return {}
    return {"rate": written}


def _queues(script: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if script in _CAKE:
        arriving = {**_ONE_CLASS, "wash": True}
        return (
            {"qdisc": "cake", "qdisc_options": _CAKE[script]},
            {"qdisc": "cake", "qdisc_options": arriving},
        )
    queue = {"qdisc": "fq_codel", "buffer": "1001pkt"}
    return queue, queue
