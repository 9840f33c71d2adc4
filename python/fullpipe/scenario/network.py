"""The network of a scenario's document, for commands that bring flows of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.scenario.model import Scenario

#: What belongs to a scenario's network, hosts and randomness, and not to its flows.
_KEYS = (
    "path",
    "link",
    "wifi",
    "host",
    "cc",
    "seed",
    "sample_interval",
    "start_spread",
    "rtt_spread",
)


def network_of(document: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keys of the document that describe its network. Raises UserError, which names the file
    `source`, if it has none, or a key that no scenario has."""
    if "path" not in document and "link" not in document:
        raise UserError(f"{source}: has no [path] and no [[link]]; a network is needed")
    for key in document:
        if key not in Scenario.model_fields:
            raise UserError(f"{source}: {key}: unknown key; no scenario has it")
    return {key: document[key] for key in _KEYS if key in document}
