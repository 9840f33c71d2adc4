"""Analysis of variance with several factors and their pairwise interactions, by statsmodels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fullpipe.statistics.groups import StatisticsError


@dataclass(frozen=True)
class Effect:
    """One line of the table: a factor, a pair, or the residual (`residual`, without F and p).

    `eta_squared` is its share of all variation, `partial_eta_squared` its share of its own and
    what is left (Cohen, 1973)."""

    source: str
    sum_of_squares: float
    df: float
    f: float | None
    p_value: float | None
    eta_squared: float
    partial_eta_squared: float | None


def factorial_anova(values: Sequence[float], factors: Mapping[str, Sequence[str]]) -> list[Effect]:
    """The table of an analysis of variance of runs with type II sums of squares, the largest
    effect first, the residual last. Pairs of factors that the runs cannot estimate are left out.

    Raises StatisticsError for no factor, one with one value, or too few runs."""
    import pandas
    from statsmodels.regression.linear_model import OLS  # formula.api loads every other model too
    from statsmodels.stats.anova import anova_lm

    if not factors:
        raise StatisticsError("there is no factor; name at least one")
    for name, levels in factors.items():
        if len(set(levels)) < 2:
            raise StatisticsError(f"{name}: has one value; an effect needs at least two")
    frame = pandas.DataFrame({"y": np.asarray(values, dtype=np.float64)})
    columns = {}
    for index, (name, levels) in enumerate(factors.items()):
        columns[f"f{index}"] = name
        frame[f"f{index}"] = list(levels)
    main = [f"C({column})" for column in columns]
    pairs = [f"{first}:{second}" for i, first in enumerate(main) for second in main[i + 1 :]]
    parameters = np.prod([len(set(levels)) for levels in factors.values()])
    terms = main + (pairs if len(frame) > parameters else [])
    if len(frame) <= sum(len(set(levels)) - 1 for levels in factors.values()) + 1:
        raise StatisticsError(f"{len(frame)} runs are too few for these factors")
    table = anova_lm(OLS.from_formula("y ~ " + " + ".join(terms), frame).fit(), typ=2)
    total = float(table["sum_sq"].sum())
    left = float(table.loc["Residual", "sum_sq"])
    effects = []
    for source, row in table.iterrows():
        label = str(source)
        for column, name in columns.items():
            label = label.replace(f"C({column})", name)
        squares = float(row["sum_sq"])
        residual = label == "Residual"
        partial = None
        if not residual and squares + left > 0:
            partial = squares / (squares + left)
        effects.append(
            Effect(
                "residual" if residual else label.replace(":", " x "),
                sum_of_squares=squares,
                df=float(row["df"]),
                f=None if residual else float(row["F"]),
                p_value=None if residual else float(row["PR(>F)"]),
                eta_squared=squares / total if total > 0 else float("nan"),
                partial_eta_squared=partial,
            )
        )
    return sorted(effects, key=lambda effect: (effect.f is None, -effect.sum_of_squares))
