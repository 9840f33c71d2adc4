"""Statistics of comparisons. SciPy and statsmodels do the mathematics; this package says what a
number stands for, tests what a test assumes, and keeps pseudo-replication marked.

`by_run` (or, explicitly, `pseudo_replicates`) makes groups; `compare_groups` runs every test.
"""

from fullpipe.statistics.anova import (
    GroupSummary,
    KruskalWallis,
    OneWayAnova,
    WelchAnova,
    kruskal_wallis,
    one_way_anova,
    welch_anova,
)
from fullpipe.statistics.assumptions import Assumptions, check_assumptions
from fullpipe.statistics.bootstrap import Interval, bootstrap_difference, bootstrap_interval
from fullpipe.statistics.comparison import Comparison, compare_groups
from fullpipe.statistics.distributions import Equality, equality, rejected
from fullpipe.statistics.groups import Groups, StatisticsError, by_run, pseudo_replicates
from fullpipe.statistics.posthoc import Pair, tukey_hsd

__all__ = [
    "Assumptions",
    "Comparison",
    "Equality",
    "GroupSummary",
    "Groups",
    "Interval",
    "KruskalWallis",
    "OneWayAnova",
    "Pair",
    "StatisticsError",
    "WelchAnova",
    "bootstrap_difference",
    "bootstrap_interval",
    "by_run",
    "check_assumptions",
    "compare_groups",
    "equality",
    "kruskal_wallis",
    "one_way_anova",
    "pseudo_replicates",
    "rejected",
    "tukey_hsd",
    "welch_anova",
]
