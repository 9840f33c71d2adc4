"""A router's SQM in one key."""

from __future__ import annotations

from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


def directions(sqm: dict[str, Any], **link: Any) -> list[dict[str, Any]]:
    row = [{"name": "router", "sqm": sqm, **link}, {"name": "modem", "rate": "20mbit"}]
    document = {"duration": "1s", "link": row, "flow": [{"cc": "cubic"}]}
    medium = resolve(make_scenario(document))["links"][0]["medium"]
    return [medium["forward"], medium["reverse"]]


RATES = {"upload": "19mbit", "download": "285mbit"}


@pytest.mark.parametrize(
    ("script", "tins"), [("piece_of_cake", "besteffort"), ("layer_cake", "diffserv3")]
)
def test_cake_of_sqm_scripts_washes_what_arrives(script: str, tins: str) -> None:
    forward, reverse = directions({**RATES, "script": script}, overhead="docsis")
    queues = [way["qdisc"]["aqm"] for way in (forward, reverse)]
    assert [way["rate_bps"] for way in (forward, reverse)] == [19_000_000, 285_000_000]
    assert [queue["tins"] for queue in queues] == [tins, "besteffort"]
    assert [queue["wash"] for queue in queues] == [False, True]
    assert [queue["ingress"] for queue in queues] == [False, False]
    assert {(queue["overhead_bytes"], queue["mpu_bytes"]) for queue in queues} == {(18, 64)}


def test_simplest_is_fq_codel_with_1001_packets() -> None:
    for way in directions({**RATES, "script": "simplest"}):
        assert way["qdisc"]["aqm"]["kind"] == "fq_codel"
        assert way["qdisc"]["limit_packets"] == 1001


@pytest.mark.parametrize(
    ("sqm", "link", "why"),
    [
        (RATES, {"rate": "5mbit"}, r"link\.0\.rate: .*excludes sqm"),
        (RATES, {"reverse": {"qdisc": "fq"}}, r"link\.0\.reverse\.qdisc: .*excludes sqm"),
        ({"upload": "5mbit"}, {}, r"link\.0\.sqm\.download: is missing"),
        ({**RATES, "script": "simple"}, {}, r"link\.0\.sqm\.script: .*piece_of_cake"),
        ({**RATES, "upload": "5"}, {}, r"link\.0\.sqm\.upload: '5'"),
    ],
)
def test_an_sqm_that_is_none_is_refused(
    sqm: dict[str, str], link: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        directions(sqm, **link)
