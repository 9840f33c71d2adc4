"""The overhead of a link layer, in CAKE's words, at any link."""

from __future__ import annotations

import math
from typing import Any

import pytest

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.engines.rows import refuse_links
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: tc-cake(8): bytes for a packet of IP, and its framing.
WORDS = {
    "docsis": (18, 64, "none"),
    "ethernet": (38, 84, "none"),
    "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"),
    "pppoe-llcsnap": (40, 0, "atm"),
    "ipoa-vcmux": (8, 0, "atm"),
    "conservative": (48, 0, "atm"),
}


def scenario(**link: Any) -> dict[str, Any]:
    down = {"rate": "50mbit"}
    return {
        "duration": "6s", "warmup": "1s",
        "link": [{"name": "a", "rate": "4mbit", "delay": "10ms", "reverse": down, **link}],
        "flow": [{"cc": "cubic"}],
    }  # fmt: skip


def on_link(packet: int, overhead: int, mpu: int, framing: str) -> int:
    """Bytes that a packet of IP takes."""
    size = max(packet + overhead, mpu)
    if framing == "atm":
        return math.ceil(size / 48) * 53
    return size + math.ceil(size / 64) if framing == "ptm" else size


@pytest.mark.parametrize("qdisc", ["fifo", "cake"])
@pytest.mark.parametrize("word", WORDS)
def test_a_full_link_carries_as_much_payload_as_its_layer_leaves(word: str, qdisc: str) -> None:
    """1448 of 1500 bytes of IP are payload."""
    runs = fullpipe.run(scenario(overhead=word, qdisc=qdisc), jobs=1)
    goodput_bps = runs.metrics().to_pylist()[0]["goodput_bps"]
    assert goodput_bps == pytest.approx(4e6 * 1448 / on_link(1500, *WORDS[word]), rel=0.01)


def test_both_directions_have_the_layer_unless_the_reverse_has_its_own() -> None:
    def layers(**link: Any) -> list[Any]:
        medium = resolve(make_scenario(scenario(**link)))["links"][0]["medium"]
        return [medium[way].get("overhead") for way in ("forward", "reverse")]

    docsis = {"bytes": 18, "mpu_bytes": 64, "framing": "none"}
    assert layers() == [None, None]
    assert layers(overhead="docsis") == [docsis, docsis]
    own = {"rate": "50mbit", "overhead": 44, "framing": "atm"}
    assert layers(overhead="docsis", reverse=own) == [
        docsis, {"bytes": 44, "mpu_bytes": 0, "framing": "atm"}
    ]  # fmt: skip
    assert layers(overhead="docsis", mpu=72)[0] == {**docsis, "mpu_bytes": 72}


def test_cake_counts_the_layer_itself_and_its_own_options_go_first() -> None:
    def wire(**link: Any) -> dict[str, Any]:
        found = resolve(make_scenario(scenario(overhead="docsis", **link)))
        return dict(found["links"][0]["medium"]["forward"])

    shaping = wire(qdisc="cake")
    aqm = shaping["qdisc"]["aqm"]
    assert "overhead" not in shaping
    assert (aqm["overhead_bytes"], aqm["mpu_bytes"]) == (18, 64)
    own = wire(qdisc="cake", qdisc_options={"overhead": "pppoe-ptm"})["qdisc"]["aqm"]
    assert (own["overhead_bytes"], own["mpu_bytes"], own["framing"]) == (30, 0, "ptm")
    below = wire(qdisc="cake", qdisc_options={"bandwidth": "unlimited"})
    assert below["overhead"]["bytes"] == 18 and below["qdisc"]["aqm"]["overhead_bytes"] is None


def test_the_path_of_a_modem_has_a_layer_too() -> None:
    path = {"rate": "4mbit", "rtt": "20ms", "overhead": "pppoe-ptm"}
    runs = fullpipe.run({"duration": "5s", "path": path, "flow": [{"cc": "cubic"}]}, jobs=1)
    goodput_bps = runs.metrics().to_pylist()[0]["goodput_bps"]
    assert goodput_bps == pytest.approx(4e6 * 1448 / on_link(1500, *WORDS["pppoe-ptm"]), rel=0.03)


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"overhead": "docis"}, "did you mean docsis"),
        ({"overhead": 400}, "from -64 to 256"),
        ({"qdisc": "tbf", "overhead": 18}, "tbf shapes by itself"),
    ],
)
def test_layers_that_cannot_be_are_refused(link: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        resolve(make_scenario(scenario(**link)))


@pytest.mark.parametrize(
    ("word", "why"), [("pppoe-ptm", 'no "ptm"'), ("ipoa-vcmux", "at least 14")]
)
def test_kernels_refuse_what_htb_does_not_count(word: str, why: str) -> None:
    plan = resolve(make_scenario(scenario(overhead=word)))
    with pytest.raises(UserError, match=why):
        refuse_links(plan, "vm")
    refuse_links(resolve(make_scenario(scenario(overhead="docsis"))), "vm")
