"""Models against observed shares: the mean squared error of each, panel by panel.

The IFIP 2025 study ("BBR's Sharing Behavior with CUBIC and Reno") published two figures of merit
for BBRv1, each over panels 2a, 2b and 2c (126 points): 0.006 for the steady state, 0.058 for the
fluid model. Both are computed here with its conventions and with consistent ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fullpipe.models.domain import FRAME_BYTES, PAYLOAD_BYTES, Contest
from fullpipe.models.extended import contest_run, run_extended
from fullpipe.models.fluid import FluidResult, published_run, run_fluid
from fullpipe.models.observed import Panel
from fullpipe.models.share import contest_fluid_run
from fullpipe.models.steady import bbr1_share
from fullpipe.models.steady3 import bbr3_share

PAYLOAD = PAYLOAD_BYTES / FRAME_BYTES
#: Model -> published MSE over 2a + 2b + 2c.
PUBLISHED = {"steady v1, as published": 0.006, "fluid, as published": 0.058}
#: Panels behind the published figures.
PUBLISHED_PANELS = ("2a", "2b", "2c")

Progress = Callable[[float], None]
Model = Callable[[Sequence[Contest], Progress | None], list[float]]


@dataclass(frozen=True)
class Line:
    """One model on one panel: its share at each of the panel's points, and the error."""

    model: str
    panel: Panel
    shares: tuple[float, ...]

    @property
    def squared_errors(self) -> tuple[float, ...]:
        """One a point."""
        pairs = zip(self.shares, self.panel.points, strict=True)
        return tuple((share - point.share) ** 2 for share, point in pairs)

    @property
    def mse(self) -> float:
        """Mean squared error over the panel's points."""
        return statistics.fmean(self.squared_errors)


@dataclass(frozen=True)
class Validation:
    """All models on all panels."""

    lines: tuple[Line, ...]

    def overall(self) -> dict[tuple[str, str], tuple[float, int]]:
        """(model, BBR version) -> MSE over all points of that version's panels, their number."""
        errors: dict[tuple[str, str], list[float]] = {}
        for line in self.lines:
            errors.setdefault((line.model, line.panel.version), []).extend(line.squared_errors)
        return {key: (statistics.fmean(values), len(values)) for key, values in errors.items()}

    def missing_panels(self) -> list[str]:
        """Panels of the published figures of merit that the observations lack."""
        present = {line.panel.figure for line in self.lines}
        return [figure for figure in PUBLISHED_PANELS if figure not in present]


def validate(panels: Sequence[Panel], on_progress: Progress | None = None) -> Validation:
    """Every model that is meant for, or was tried on, a panel's BBR version, on that panel."""
    jobs = [(panel, name, model) for panel in panels for name, model in _models(panel.version)]
    lines = []
    for index, (panel, name, model) in enumerate(jobs):
        part = _part(on_progress, index, len(jobs))
        shares = model([point.contest for point in panel.points], part)
        lines.append(Line(name, panel, tuple(shares)))
        if part is not None:
            part(1.0)
    return Validation(tuple(lines))


def _part(on_progress: Progress | None, index: int, count: int) -> Progress | None:
    if on_progress is None:
        return None
    report = on_progress
    return lambda done: report((index + done) / count)


def _models(version: str) -> list[tuple[str, Model]]:
    fluids: list[tuple[str, Model]] = [
        ("fluid, as published", _fluid_published),
        ("fluid, consistent", _fluid_consistent),
    ]
    if version == "bbr1":
        return [
            ("steady v1, as published", _ware),
            ("steady v1, consistent", _ware_consistent),
            *fluids,
        ]
    if version == "bbr2":
        return [("steady v1, as published", _ware), *fluids, ("extended fluid", _extended)]
    return [
        ("steady v1, as published", _ware),
        ("steady v3", _steady3),
        ("extended fluid", _extended),
    ]


def _ware(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    return [bbr1_share(contest).share for contest in contests]


def _ware_consistent(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    """Goodput against goodput, in frames as the bottleneck counts them."""
    return [
        PAYLOAD * bbr1_share(contest, packet_bits=8 * FRAME_BYTES).share for contest in contests
    ]


def _steady3(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    return [bbr3_share(contest).share for contest in contests]


def _extended(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    results = run_extended([contest_run(contest) for contest in contests], on_progress=on_progress)
    return [result.share_of(contest.cc) for result, contest in zip(results, contests, strict=True)]


def _fluid_published(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    """Buffer in link BDP, sending rate, and segments/ms taken times 10 for Mbit/s."""
    runs = []
    for contest in contests:
        quarter_ms = contest.rtt_s * 1000 / 4
        run = published_run(
            contest.flows + 1,
            contest.rate_bps / 1e6,
            contest.buffer_bdp,
            [contest.against, *[contest.cc] * contest.flows],
            quarter_ms,
            (quarter_ms, quarter_ms),
        )
        runs.append(run)
    return [
        _ifip_share(result, contest)
        for result, contest in zip(run_fluid(runs, on_progress=on_progress), contests, strict=True)
    ]


def _ifip_share(result: FluidResult, contest: Contest) -> float:
    rates = zip(result.ifip_mbps(), result.run.ccs, strict=True)
    return sum(rate for rate, cc in rates if cc == contest.cc) / (contest.rate_bps / 1e6)


def _fluid_consistent(contests: Sequence[Contest], on_progress: Progress | None) -> list[float]:
    """Buffer in RTT BDP, goodput, units converted."""
    runs = [contest_fluid_run(contest) for contest in contests]
    results = run_fluid(runs, on_progress=on_progress)
    return [
        PAYLOAD * result.share_of(contest.cc)
        for result, contest in zip(results, contests, strict=True)
    ]
