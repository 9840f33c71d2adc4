"""Tarn's least RTT where packets overtake others."""

from __future__ import annotations

import pytest

import fullpipe

#: Seeds in which one of the first ten packets overtakes the others.
SEEDS = (12, 26, 34)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_packet_that_overtakes_at_the_start_does_not_set_the_least_rtt(seed: int) -> None:
    # Its RTT is 21 ms, and the next one is of exactly 40 ms while its hole is open.
    link = {"name": "l", "rate": "20mbit", "delay": "20ms", "buffer": "2bdp", "reorder": "1%"}
    scenario = {"duration": "15s", "link": [link], "flow": [{"cc": "tarn"}]}
    recording = fullpipe.run(scenario, seeds=[seed])[0]
    samples = recording.table("cc_samples").to_pydict()
    settled = [
        least for t_us, least in zip(samples["t_us"], samples["min_rtt_us"], strict=True)
        if t_us > 2_000_000
    ]  # fmt: skip
    assert min(settled) == 40_000
