"""Round trips that differ from run to run by less than a packet takes. Never knows an engine."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario

#: What a packet of the bottleneck's takes on the wire, bytes.
WIRE_BYTES = 1514


def phase(document: Mapping[str, Any], drawn_by: str) -> dict[str, str]:
    """Keys of a run's path: a round trip up to one packet's time longer than the document's, with
    its buffer in bytes. Where ACKs that come a round trip after a departure fall between
    departures decides who finds a full queue (Floyd and Jacobson, "On traffic phase effects in
    packet-switched gateways", 1992), and no two engines, as no two networks, agree to the
    microsecond."""
    path = resolve(make_scenario(dict(document)))["path"]
    packet_ns = 8 * WIRE_BYTES * 10**9 / path["rate_bps"]
    more_ns = random.Random(drawn_by).uniform(0, packet_ns)
    rtt_us = round((path["forward_delay_ns"] + path["reverse_delay_ns"] + more_ns) / 1000)
    limit = path["qdisc"]["limit_bytes"]
    return {"rtt": f"{rtt_us}us"} | ({"buffer": f"{limit}B"} if limit else {})
