"""The steady-state models against worked examples, measurements and their own domain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullpipe.base.errors import UserError
from fullpipe.models import Contest, bbr1_share, bbr3_share, read_observed
from helpers import DATA

OBSERVED = DATA / "link_share_observed.csv"


def contest(mbps: float, rtt_ms: float, buffer_bdp: float, flows: int, **more: object) -> Contest:
    fields: dict[str, Any] = {"cc": "bbr1", "against": "cubic", **more}
    return Contest(
        flows=flows, rate_bps=mbps * 1e6, rtt_s=rtt_ms / 1000, buffer_bdp=buffer_bdp, **fields
    )


# Ware et al., IMC 2019, equations (9) to (11): worked by hand.
@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "buffer_bdp", "flows", "raw", "probe_time", "share"),
    [
        (10, 40, 2, 1, 0.1900, 0.0320, 0.7841),
        (10, 40, 8, 1, 0.4225, 0.0560, 0.5452),
        (10, 40, 32, 1, 0.4806, 0.1520, 0.4404),
        (50, 30, 4, 2, 0.3590, 0.0350, 0.6186),
        (50, 30, 16, 8, 0.4527, 0.0710, 0.5084),
        (10, 40, 4, 16, -0.1050, 0.0400, 0.9600),
        (40, 10, 2, 1, 0.1900, 0.0230, 0.7914),
        (40, 10, 8, 5, 0.3625, 0.0290, 0.6190),
        (50, 40, 16, 10, 0.4537, 0.0880, 0.4982),
        (10, 40, 64, 32, 0.4322, 0.2800, 0.4088),
    ],
)
def test_bbr1_share_equals_worked_examples_to_four_digits(
    mbps: float, rtt_ms: float, buffer_bdp: float, flows: int,
    raw: float, probe_time: float, share: float,
) -> None:  # fmt: skip
    found = bbr1_share(contest(mbps, rtt_ms, buffer_bdp, flows))
    assert found.loss_based_raw == pytest.approx(raw, abs=5e-5)
    assert found.loss_based == max(0.0, found.loss_based_raw)
    assert found.probe_time == pytest.approx(probe_time, abs=5e-5)
    assert found.share == pytest.approx(share, abs=5e-5)


def test_bbr1_error_on_panel_2a_is_the_published_third_of_0_006() -> None:
    panel = next(p for p in read_observed(OBSERVED) if p.figure == "2a")
    errors = [(bbr1_share(p.contest).share - p.share) ** 2 for p in panel.points]
    assert len(errors) == 42
    assert sum(errors) / 42 == pytest.approx(0.00671, abs=1e-5)


def test_bbr3_error_on_panel_5a_is_within_the_target_where_no_assumption_fails() -> None:
    panel = next(p for p in read_observed(OBSERVED) if p.figure == "5a")
    answers = [(bbr3_share(p.contest), p.share) for p in panel.points]
    errors = [(found.share - seen) ** 2 for found, seen in answers if not found.cautions]
    assert len(errors) >= 12
    assert sum(errors) / len(errors) <= 0.012


@pytest.mark.parametrize(
    ("question", "assumption"),
    [
        (contest(10, 40, 0.5, 1), "full_queue"),
        (contest(10, 40, 1, 1), "loss_based_window"),
        (contest(10, 1000, 16, 1), "probe_rtt_fits"),
        (contest(10, 40, 8, 1, against_flows=4), "one_loss_based_flow"),
    ],
)
def test_a_question_outside_bbr1s_assumptions_is_answered_with_the_assumptions_name(
    question: Contest, assumption: str
) -> None:
    found = bbr1_share(question)
    assert assumption in [caution.assumption for caution in found.cautions]
    assert 0 <= found.share <= 1


def test_a_question_inside_bbr1s_assumptions_is_answered_without_warning() -> None:
    assert bbr1_share(contest(10, 40, 8, 4)).cautions == ()


paths = st.builds(
    contest,
    st.floats(0.1, 1e5),
    st.floats(1, 1000),
    st.floats(0.1, 1000),
    st.integers(1, 1000),
    against=st.sampled_from(["cubic", "reno"]),
    against_flows=st.integers(1, 50),
)


@given(paths)
def test_shares_are_shares_wherever_the_models_are_asked(question: Contest) -> None:
    assert 0 <= bbr1_share(question).share <= 1
    assert 0 <= bbr3_share(question).share <= 1


@given(paths)
def test_the_balance_of_bbr3s_windows_holds_at_the_predicted_part(question: Contest) -> None:
    # The definition, written again: twice the bandwidth times the RTT seen in ProbeRTT, plus four
    # segments a flow, is what BBR has in flight when the buffer is full.
    part = bbr3_share(question).by_window
    if not 1e-6 < part < 1 - 1e-6:
        return
    capacity = question.rate_bps / 12112
    full = (question.buffer_bdp + 1) * capacity * question.rtt_s
    half = 0.5 * (1 - part)
    min_rtt_s = max(
        question.rtt_s,
        part * full / capacity / (1 - half),
        (part * full + 4 * question.flows) / capacity,
    )
    window = 2 * (1 - part) * capacity * min_rtt_s + 4 * question.flows
    assert window == pytest.approx((1 - part) * full, rel=1e-3, abs=1e-3)


def test_bbr3_in_deep_buffers_gets_two_thirds_where_only_its_window_limits_it() -> None:
    # p = 1/3 solves 2 R = full RTT with R = p full / (1 - (1 - p) / 2).
    found = bbr3_share(contest(1000, 40, 16, 1))
    assert found.by_window == pytest.approx(1 / 3, abs=2e-3)
    assert found.by_clock < found.by_window


@pytest.mark.parametrize(
    ("question", "assumption"),
    [
        (contest(10, 40, 0.5, 1), "overflow_by_probes"),
        (contest(10, 40, 64, 1), "probe_before_loss_based_overflow"),
        (contest(50, 30, 64, 1), "probe_rtt_fits"),
        (contest(10, 40, 1, 32), "more_than_least_window"),
        (contest(10, 40, 32, 16), "one_probe_at_a_time"),
    ],
)
def test_bbr3s_steady_state_names_the_assumption_that_fails(
    question: Contest, assumption: str
) -> None:
    assert assumption in [caution.assumption for caution in bbr3_share(question).cautions]


def test_a_question_inside_bbr3s_assumptions_is_answered_without_warning() -> None:
    assert bbr3_share(contest(10, 40, 4, 4)).cautions == ()


def test_more_bbr_flows_never_get_less_and_bbr1_never_gains_from_a_deeper_buffer() -> None:
    counts, buffers = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16, 32, 64)
    for mbps, rtt_ms in ((10, 20), (10, 60), (100, 20), (100, 60)):
        for model in (bbr1_share, bbr3_share):
            for x in buffers:
                shares = [model(contest(mbps, rtt_ms, x, n)).share for n in counts]
                assert shares == sorted(shares)
        for n in counts:
            shares = [bbr1_share(contest(mbps, rtt_ms, x, n)).share for x in buffers]
            assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate_bps", 0.0), ("rate_bps", -1.0), ("rate_bps", float("nan")), ("rate_bps", 1e13),
        ("rtt_s", 0.0), ("rtt_s", float("inf")), ("rtt_s", 1e3),
        ("buffer_bdp", 0.0), ("buffer_bdp", -2.0), ("buffer_bdp", float("nan")),
        ("flows", 0), ("flows", -3), ("flows", 10**6), ("against_flows", 0),
        ("against", "vegas"),
    ],
)  # fmt: skip
def test_impossible_questions_are_refused_by_name(field: str, value: object) -> None:
    fields: dict[str, object] = {
        "cc": "bbr1", "flows": 1, "against": "cubic", "rate_bps": 1e7, "rtt_s": 0.04,
        "buffer_bdp": 8.0, "against_flows": 1,
    }  # fmt: skip
    with pytest.raises(UserError, match={"flows": "n:", "against_flows": "against_n:"}.get(
        field, field.removesuffix("_bps").removesuffix("_s").removesuffix("_bdp")
    )):  # fmt: skip
        Contest(**{**fields, field: value})  # type: ignore[arg-type]
