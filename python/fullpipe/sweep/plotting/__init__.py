"""Plots of a store: `chart` asks it for what a plot shows, `static` and `page` draw that.

Means carry Student's 95 % interval over runs, and every plot says how many runs a point has.
"""

from fullpipe.sweep.plotting.chart import KINDS, Chart, Request, make_chart

__all__ = ["KINDS", "Chart", "Request", "make_chart"]
