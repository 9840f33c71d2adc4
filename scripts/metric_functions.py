"""Writes docs/reference/metric_functions.md: the functions of the metric language, from their
docstrings.

python scripts/metric_functions.py
"""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

from fullpipe.experiments import metric_functions

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metric_functions.md"
_HEAD = """# Metric functions

The functions of the [metric language](experiments.md#metrics) of experiments, with the defaults of
their arguments. `python scripts/metric_functions.py` writes this page.

`group` is a congestion control, a flow's name, or the part of flows' names before the last dot;
of `traffic_...` it is a `[[traffic]]`'s name or congestion control. Empty means all flows. `at` is
"mean", "min", "median", "max" or a quantile such as 0.95. `queue` is a name as in recordings, such
as `wifi.forward`; empty means the bottleneck's. "Of" such values means: what `at` says of them.
"""


def _entry(name: str, function: metric_functions.Measure) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]  # without the view
    arguments = ", ".join(
        parameter.name if parameter.default is parameter.empty
        else f"{parameter.name}={parameter.default!r}"
        for parameter in parameters
    )  # fmt: skip
    text = f"`{name}({arguments})`: {inspect.getdoc(function)}"
    return textwrap.fill(
        " ".join(text.split()), 99, initial_indent="- ", subsequent_indent="  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def page() -> str:
    """The whole page."""
    entries = [
        _entry(name, function)
        for name, function in metric_functions.FUNCTIONS.items()
        if getattr(metric_functions, name, None) is function  # others are in metrics.md
    ]
    return "\n".join([_HEAD, *entries]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
