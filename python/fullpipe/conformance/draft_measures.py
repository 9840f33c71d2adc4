"""The measures of the draft's example test cases, from a trajectory: one function for each case.

Each returns named numbers and texts; the case's file has the conditions on them. NaN or "" means
that the event did not happen. Must never judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fullpipe.conformance.trajectory import Trajectory, Visit
from fullpipe.expr.language import Scalar

Measured = dict[str, Scalar]
#: Growth below this is a plateau (draft, section "Exiting Acceleration Based on Bandwidth
#: Plateau").
_GROWTH = 1.25
#: Rounds over which the doubling of case 15 is looked at.
_STEPS = 4


def startup_plateau(t: Trajectory) -> Measured:
    """Case 1. `flat_rounds`: rounds before the exit in which max_bw grew by less than 25 % over
    the last value that had."""
    startup = t.visit("startup")
    if startup is None or not startup.next:
        return {"next": ""}
    after = startup.last + 1
    rounds = np.unique(t.round[startup.first : after + 1])
    best, flat = 0.0, 0
    for number in rounds[1:]:
        bandwidth_bps = float(t.max_bw_bps[t.round == number][0])
        best, flat = (bandwidth_bps, 0) if bandwidth_bps >= _GROWTH * best else (best, flat + 1)
    return {
        "next": startup.next,
        "estimate": t.estimate(after),
        "flat_rounds": float(flat),
        "rounds": t.rounds(startup),
        "lost": float(t.lost[after]),
    }


def startup_loss(t: Trajectory) -> Measured:
    """Case 2. `before_rounds`: rounds in Startup before any loss; `exit_rounds`: rounds from the
    first loss to the exit; `loss`: lost over in flight within them."""
    startup = t.visit("startup")
    if startup is None or not startup.next:
        return {"next": ""}
    after = startup.last + 1
    lossy = int(np.argmax(t.lost > 0)) if (t.lost > 0).any() else after
    lost = float(t.lost[after] - t.lost[max(lossy - 1, 0)])
    return {
        "next": startup.next,
        "before_rounds": float(t.round[lossy] - t.round[startup.first]),
        "exit_rounds": float(t.round[after] - t.round[lossy]),
        "loss": lost / max(float(t.inflight[lossy - 1]), 1.0),
        "estimate": t.estimate(after),
        "longterm": float(t.longterm[after]),
        "longterm_over_target": float(t.longterm[after]) / t.target_packets(after),
    }


def drain(t: Trajectory) -> Measured:
    """Cases 3 and 4: how Drain went, and why it ended."""
    visit = t.visit("drain")
    if visit is None or not visit.next:
        return {"next": ""}
    after = visit.last + 1
    target = t.target_packets(visit.last)
    return {
        "next": visit.next,
        "pacing_gain": float(t.pacing_gain[visit.first]),
        "rounds": t.rounds(visit),
        "last_inflight_over_target": float(t.inflight[visit.last]) / target,
        "exit_inflight_over_target": float(t.inflight[after]) / target,
        "exit_excess_bursts": (float(t.inflight[after]) - target) / t.burst_packets(visit.last),
    }


def up(t: Trajectory) -> Measured:
    """Case 5: UP, its rounds, growth of max_bw and losses."""
    visit = t.visit("up")
    if visit is None or not visit.next:
        return {"next": ""}
    after = visit.last + 1
    return {
        "next": visit.next,
        "rounds": t.rounds(visit),
        "growth": float(t.max_bw_bps[after] / t.max_bw_bps[visit.first]),
        "lost": float(t.lost[after] - t.lost[visit.first]),
        "peak_over_bdp": float(t.inflight[visit.first : after + 1].max()) / t.bdp,
        "estimate": t.estimate(after),
    }


def up_loss(t: Trajectory) -> Measured:
    """Cases 6 and 21: the first UP in which packets were lost. `exit_rounds`: from the loss to the
    exit; `cut`: inflight_longterm after over before it; `floor`: what beta leaves of the target."""
    for visit in t.visits:
        if visit.phase != "up" or not visit.next:
            continue
        after = min(visit.last + 1, t.lost.size - 1)
        lost = t.lost[visit.first : after + 1] - t.lost[visit.first]
        if lost[-1] <= 0:
            continue
        lossy = visit.first + int(np.argmax(lost > 0))
        before = float(t.longterm[max(lossy - 1, visit.first)])
        return {
            "next": visit.next,
            "before_rounds": float(t.round[lossy] - t.round[visit.first]),
            "exit_rounds": float(t.round[after] - t.round[lossy]),
            "lost": float(lost[-1]),
            "longterm_before": before,
            "longterm_after": float(t.longterm[after]),
            "cut": float(t.longterm[after]) / before,
            "inflight_at_loss": float(t.inflight[max(lossy - 1, 0)]),
            "beta_target": 0.7 * min(t.target_packets(lossy), float(t.cwnd[lossy])),
        }
    return {"next": ""}


def app_limited(t: Trajectory) -> Measured:
    """Case 7: the phases that followed Startup and UP, over the whole run."""

    def ends(phase: str) -> str:
        phases = {v.next for v in t.visits if v.phase == phase and v.next}
        return " ".join(sorted(phases))

    ups = [t.rounds(visit) for visit in t.visits if visit.phase == "up"]
    startups = [t.rounds(visit) for visit in t.visits if visit.phase == "startup"]
    return {
        "startup_ends": ends("startup"),
        "up_ends": ends("up"),
        "startup_rounds": max(startups, default=0.0),
        "up_rounds": max(ups, default=0.0),
        "lost_after_startup": _lost_after_startup(t),
    }


def _lost_after_startup(t: Trajectory) -> float:
    first = t.visit("up")
    return float(t.lost[-1] - t.lost[first.first]) if first else math.nan


def down(t: Trajectory) -> Measured:
    """Cases 8 and 9: the DOWN that follows the first UP."""
    visit = _after(t, "up", "down")
    if visit is None or not visit.next:
        return {"next": ""}
    after = visit.last + 1
    target = t.target_packets(visit.last)
    headroom = 0.85 * float(t.longterm[visit.last])
    limit = min(target, headroom)
    return {
        "next": visit.next,
        "pacing_gain": float(t.pacing_gain[visit.first]),
        "rounds": t.rounds(visit),
        "seconds": t.seconds(visit),
        "rounds_at_most": min(63.0, target),
        "last_inflight_over_limit": float(t.inflight[visit.last]) / limit,
        "exit_inflight_over_limit": float(t.inflight[after]) / limit,
        "exit_excess_bursts": (float(t.inflight[after]) - limit) / t.burst_packets(visit.last),
    }


def _after(t: Trajectory, before: str, phase: str) -> Visit | None:
    """The first stay in a phase right after one in another."""
    pairs = zip(t.visits, t.visits[1:], strict=False)
    return next((b for a, b in pairs if a.phase == before and b.phase == phase), None)


def probe_rtt(t: Trajectory) -> Measured:
    """Cases 10 and 20: the first ProbeRTT. `after_s`: since the connection's first round, whose RTT
    is the least that the path has."""
    visit = t.visit("probe_rtt")
    if visit is None or not visit.next:
        return {"next": "", "startup_next": _startup_next(t)}
    index = t.visits.index(visit)
    at, after = visit.first, visit.last + 1
    least = float(t.cwnd[at:after].min())
    half = float(np.maximum(np.ceil(0.5 * t.bdp_packets(at)), 4.0))
    later = min(after + max(int(0.5 / max(t.t_s[1] - t.t_s[0], 1e-3)), 1), t.t_s.size - 1)
    return {
        "previous": t.visits[index - 1].phase if index else "",
        "next": visit.next,
        "after_s": float(t.t_s[at] - t.t_s[0]),
        "seconds": t.seconds(visit),
        "rounds": t.rounds(visit),
        "cwnd_over_half_bdp": least / half,
        "estimate": t.estimate(after),
        "resumes": t.utilisation(after, later) if later > after else math.nan,
    }


def _startup_next(t: Trajectory) -> str:
    startup = t.visit("startup")
    return startup.next if startup else ""


def idle(t: Trajectory) -> Measured:
    """Case 11: ProbeRTTs after a pause of more than 5 s."""
    quiet = np.flatnonzero(np.diff(t.delivered_bytes) == 0)
    runs = np.split(quiet, np.flatnonzero(np.diff(quiet) != 1) + 1) if quiet.size else []
    longest = max(runs, key=len, default=quiet)
    if not longest.size:
        return {"pause_s": 0.0, "probes_before": 0.0, "probes_after": 0.0, "phase": ""}
    begin, end = int(longest[0]), int(longest[-1]) + 1
    after = [v for v in t.visits if v.phase == "probe_rtt" and v.last >= end]
    later = min(t.at(float(t.t_s[end]) + 1.0), t.t_s.size - 1)
    return {
        "pause_s": float(t.t_s[end] - t.t_s[begin]),
        "phase": str(t.phase[end]),
        "inflight": float(t.inflight[(begin + end) // 2]),
        "probes_within_1s": float(sum(v.first <= later for v in after)),
        "lost": float(t.lost[end] - t.lost[begin]),
    }


def aggregation_startup(t: Trajectory) -> Measured:
    """Case 12: Startup where ACKs come in bunches. `held`: extra_acked in time at the link's rate
    (ms)."""
    startup = t.visit("startup")
    if startup is None or not startup.next:
        return {"next": ""}
    after = startup.last + 1
    return {
        "next": startup.next,
        "estimate": t.estimate(after),
        "cwnd_over_bdp": float(t.cwnd[after]) / t.bdp,
        "extra_acked_ms": _held_ms(t, float(t.extra_acked[after])),
        "rounds": t.rounds(startup),
    }


def _held_ms(t: Trajectory, packets: float) -> float:
    return float(packets * t.mss_bytes * 8e3 / (t.rate_bps * t.payload))


def aggregation_cruise(t: Trajectory) -> Measured:
    """Case 13: over all of ProbeBW (ProbeRTT left out)."""
    stays = [v for v in t.visits if v.phase in ("cruise", "down", "refill", "up")]
    stays = [v for v in stays if v.last > v.first]
    cruise = np.isin(t.phase, ["cruise", "down"])
    if not stays or not cruise.any():
        return {"utilisation": math.nan}
    seconds = sum(float(t.t_s[v.last] - t.t_s[v.first]) for v in stays)
    volume = sum(float(t.delivered_bytes[v.last] - t.delivered_bytes[v.first]) for v in stays)
    extra = float(np.median(t.extra_acked[cruise]))
    return {
        "utilisation": 8 * volume / (seconds * t.rate_bps * t.payload),
        "cwnd_beyond_2_bdp": float(np.median(t.cwnd[cruise])) - 2 * t.bdp,
        "extra_acked": extra,
        "extra_acked_ms": _held_ms(t, extra),
        "full": float(np.mean(t.inflight[cruise] >= t.cwnd[cruise])),
    }


def tiny(t: Trajectory) -> Measured:
    """Case 14: the last third of the run, if it is ProbeBW."""
    first = t.at(float(t.t_s[-1]) * 2 / 3)
    cruise = (t.phase == "cruise") & (t.t_s >= t.t_s[first])
    if not cruise.any():
        return {"least_cwnd": math.nan}
    pace = t.pacing_bps[cruise]
    return {
        "least_cwnd": float(t.cwnd[first:].min()),
        "pacing": float(np.median(pace)) / (t.rate_bps * t.payload),
        "utilisation": t.utilisation(first, t.t_s.size - 1),
        "lost": float(t.lost[-1] - t.lost[first]),
    }


def rate_up(t: Trajectory) -> Measured:
    """Case 15: after the path's first step of rate. `probing_rounds`: of REFILL and UP, until
    max_bw is within 10 % of it; `step_growth`: mean growth, round by round, of what UP adds to
    inflight_longterm."""
    _, new_bps = t.rate_steps[0]
    full = np.flatnonzero(t.max_bw_bps >= 0.9 * new_bps * t.payload)
    bdp = new_bps * t.payload * t.rtt_s / 8 / t.mss_bytes
    if not full.size:
        return {"estimate": t.estimate(-1, new_bps)}
    rounds = 0.0
    for visit in t.visits:
        if visit.phase in ("refill", "up") and visit.first < full[0]:
            end = min(visit.last + 1, int(full[0]))
            rounds += max(float(t.round[end] - t.round[visit.first]), 0.0)
    return {
        "estimate": float(np.nanmax(t.max_bw_bps)) / (new_bps * t.payload),
        "probing_rounds": rounds,
        "log2_bdp": math.log2(bdp),
        "rounds_over_log2": rounds / math.log2(bdp),
        "step_growth": _step_growth(t),
    }


def _step_growth(t: Trajectory) -> float:
    """Growth over the first four rounds that raise it, in the UP phase that raised it most. In
    later rounds the link is full, or the window is no limit."""
    best, most = math.nan, 0.0
    for visit in t.visits:
        if visit.phase != "up" or not np.isfinite(t.longterm[visit.first]):
            continue
        inside = slice(visit.first, visit.last + 1)
        rounds = np.unique(t.round[inside])
        ends = [float(t.longterm[inside][t.round[inside] == number][-1]) for number in rounds]
        steps = np.diff(ends)
        steps = steps[steps > 0]
        if steps.size >= _STEPS and steps.sum() > most:
            most = float(steps.sum())
            best = float((steps[_STEPS - 1] / steps[0]) ** (1 / (_STEPS - 1)))
    return best


def rate_down(t: Trajectory) -> Measured:
    """Case 16: after the path's first step of rate. `shortterm`: least bw_shortterm over max_bw
    before; `cycles`: UPs begun until max_bw is within 5 % of the new rate."""
    at_s, new_bps = t.rate_steps[0]
    step = t.at(at_s)
    before = float(t.max_bw_bps[step])
    low = np.flatnonzero(t.max_bw_bps[step:] <= 1.05 * new_bps * t.payload)
    lost = np.flatnonzero(t.lost[step:] > t.lost[step])
    bound = np.flatnonzero(np.isfinite(t.bw_shortterm_bps[step:]))
    measured: Measured = {
        "loss_after_rounds": _rounds_to(t, step, lost),
        "shortterm_after_rounds": _rounds_to(t, step, bound),
        "shortterm": float(np.min(t.bw_shortterm_bps[step:])) / before,
        "cycles": math.nan,
        "estimate": t.estimate(-1, new_bps),
    }
    if low.size:
        reached = step + int(low[0])
        measured["cycles"] = float(
            sum(v.phase == "up" and step < v.first <= reached for v in t.visits)
        )
        measured["seconds"] = float(t.t_s[reached] - t.t_s[step])
    return measured


def _rounds_to(t: Trajectory, begin: int, reached: npt.NDArray[np.int64]) -> float:
    if not reached.size:
        return math.nan
    return float(t.round[begin + int(reached[0])] - t.round[begin])


def policer(t: Trajectory) -> Measured:
    """Case 17: the second half of the run."""
    half = t.at(float(t.t_s[-1]) / 2)
    first = np.flatnonzero(t.lost > 0)
    sent = float(t.delivered_bytes[-1] - t.delivered_bytes[half]) / t.mss_bytes
    lost = float(t.lost[-1] - t.lost[half])
    return {
        "shortterm_set": bool(np.isfinite(t.bw_shortterm_bps).any()),
        "inflight_shortterm_set": bool(np.isfinite(t.shortterm).any()),
        "loss": lost / max(lost + sent, 1.0),
        "utilisation": t.utilisation(half, t.t_s.size - 1),
        "first_loss_s": float(t.t_s[first[0]]) if first.size else math.nan,
    }


def spurious(t: Trajectory) -> Measured:
    """Cases 18 and 19: around the first recovery or timeout that was undone. `*_back`: bounds at
    the end over those just before the first loss."""
    lossy = np.flatnonzero(t.lost > 0)
    if not lossy.size:
        return {"recoveries": t.recoveries, "timeouts": t.timeouts, "undos": t.undos}
    at = max(int(lossy[0]) - 1, 0)
    settled = t.at(float(t.t_s[at]) + 1.5 + 15 * t.rtt_s)
    window = slice(int(lossy[0]), settled + 1)
    later = [str(phase) for phase in t.phase[window]]
    return {
        "phase": str(t.phase[at]),
        "returns": any(phase == str(t.phase[at]) for phase in later[1:]),
        "recoveries": t.recoveries,
        "timeouts": t.timeouts,
        "undos": t.undos,
        "bw_back": float(t.max_bw_bps[settled] / t.max_bw_bps[at]),
        "shortterm_back": bool(
            np.isinf(t.bw_shortterm_bps[settled])
            or t.bw_shortterm_bps[settled] >= 0.98 * t.max_bw_bps[at]
        ),
        "inflight_shortterm_back": bool(
            np.isinf(t.shortterm[settled]) or t.shortterm[settled] >= t.cwnd[at]
        ),
        "longterm_back": bool(t.longterm[settled] >= t.longterm[at]),
        "cwnd_back": float(t.cwnd[window].max() / t.cwnd[at]),
    }


def refill_pause(t: Trajectory) -> Measured:
    """Case 22: the first REFILL in which less was delivered than the link carries."""
    visit = t.visit("refill")
    if visit is None or not visit.next:
        return {"next": ""}
    before, after = max(visit.first - 1, 0), visit.last + 1
    following = t.visit("up")
    return {
        "next": visit.next,
        "inflight_share": float(t.inflight[visit.first : after].min()) / t.target_packets(before),
        "max_bw": float(t.max_bw_bps[after] / t.max_bw_bps[before]),
        "rounds": t.rounds(visit),
        "up_next": following.next if following else "",
        "estimate": t.estimate(-1),
    }


#: Name in an item's file -> function.
MEASURES: dict[str, Callable[..., Measured]] = {
    function.__name__: function
    for function in (
        startup_plateau,
        startup_loss,
        drain,
        up,
        up_loss,
        app_limited,
        down,
        probe_rtt,
        idle,
        aggregation_startup,
        aggregation_cruise,
        tiny,
        rate_up,
        rate_down,
        policer,
        spurious,
        refill_pause,
    )
}
