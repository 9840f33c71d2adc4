"""All tests of one comparison together, and what their assumptions mean for reading them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from fullpipe.statistics.anova import (
    KruskalWallis,
    OneWayAnova,
    WelchAnova,
    kruskal_wallis,
    one_way_anova,
    welch_anova,
)
from fullpipe.statistics.assumptions import Assumptions, check_assumptions
from fullpipe.statistics.groups import Groups
from fullpipe.statistics.posthoc import Pair, tukey_hsd


@dataclass(frozen=True)
class Comparison:
    """One-way ANOVA, its tested assumptions, the tests that need fewer of them, Tukey's pairs, and
    `notes`: sentences for the reader."""

    anova: OneWayAnova
    assumptions: Assumptions
    welch: WelchAnova | None
    kruskal: KruskalWallis | None
    tukey: tuple[Pair, ...]
    notes: tuple[str, ...]

    @property
    def pseudo_replicated(self) -> bool:
        """True where samples of a run stand in for repetitions."""
        return self.anova.pseudo_replicated

    def to_dict(self) -> dict[str, Any]:
        """The whole as JSON values; None if a number does not exist or is infinite."""
        return {"pseudo_replicated": self.pseudo_replicated, **_plain(dataclasses.asdict(self))}


def compare_groups(groups: Groups, alpha: float = 0.05) -> Comparison:
    """Compares these groups at the level `alpha`."""
    anova = one_way_anova(groups, alpha)
    assumptions = check_assumptions(groups)
    return Comparison(
        anova=anova,
        assumptions=assumptions,
        welch=welch_anova(groups),
        kruskal=kruskal_wallis(groups),
        tukey=tukey_hsd(groups, 1 - alpha),
        notes=tuple(_notes(groups, assumptions, alpha)),
    )


def _notes(groups: Groups, assumptions: Assumptions, alpha: float) -> list[str]:
    notes = []
    if groups.pseudo_replicated:
        runs = ", ".join(str(len(group)) for group in groups.runs)
        notes.append(
            f"pseudo-replicated: samples of {runs} run(s) are treated as independent repetitions; "
            "p says how unlike these runs are, not how unlike the groups are"
        )
    dependent = [a for a in assumptions.autocorrelation if a.ljung_box_p < alpha]
    if dependent:
        worst = max(dependent, key=lambda a: a.lag1)
        notes.append(
            f"not independent: lag-1 autocorrelation up to {worst.lag1:.2f} ({worst.group}: "
            f"{worst.count} numbers are worth about {worst.effective_count:.0f})"
        )
    variances = assumptions.equal_variances
    if variances and variances.p_value < alpha:
        notes.append(f"variances differ (Levene p = {variances.p_value:.2g}): prefer Welch's test")
    skewed = [n.group for n in assumptions.normality if n.p_value < alpha]
    if skewed:
        notes.append(f"not normal: {', '.join(skewed)}; Kruskal-Wallis does not need it")
    return notes


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
