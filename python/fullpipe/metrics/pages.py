"""Pages: how long a load took, and each of its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fullpipe.metrics.flows import spread
from fullpipe.metrics.view import Columns, Floats, View

SPREAD = ("mean", "min", "p50", "p95", "p99", "max")


@dataclass(frozen=True)
class PageLoads:
    """The loads of one page that began after the warm-up, in their order. Times in s; NaN where the
    run ended first."""

    name: str
    cc: str
    start_s: Floats
    #: From the load's start (before the look-up) to the last byte of its last object: what
    #: http-getter prints, and Flent's `HTTP latency`.
    time_s: Floats
    bytes: float
    #: A row a load, a column an object: from its connection turning to it to its last byte, with
    #: look-up and handshake where the connection was made for it.
    objects_s: Floats
    object_bytes: Floats


def page_loads(view: View) -> list[PageLoads]:
    """The pages of a recording, in the order of the scenario."""
    if not view.recording.has("page_loads"):
        return []
    loads, objects = view._all("page_loads"), page_objects(view)
    pages = []
    for index, page in enumerate(view.plan.get("pages", [])):
        selected = (loads["page_id"] == index) & (loads["start_us"] >= view.start_s * 1e6)
        numbers = np.unique(loads["load"][selected])
        sizes = np.array([item["bytes"] for item in page["objects"]], dtype=float)
        times = np.full((numbers.size, sizes.size), np.nan)
        of_page = (objects["page_id"] == index) & np.isin(objects["load"], numbers)
        row = np.searchsorted(numbers, objects["load"][of_page])
        column = objects["object"][of_page].astype(int)
        took = (objects["done_us"] - objects["asked_us"])[of_page] / 1e6
        times[row, column] = took
        order = np.argsort(loads["load"][selected], kind="stable")
        start = loads["start_us"][selected][order] / 1e6
        done = loads["done_us"][selected][order] / 1e6
        pages.append(
            PageLoads(
                page["name"],
                cc=page["cc"]["name"],
                start_s=start,
                time_s=done - start,
                bytes=float(sizes.sum()),
                objects_s=times,
                object_bytes=sizes,
            )
        )
    return pages


def page_objects(view: View) -> Columns:
    """The table of objects; without rows where programs loaded the pages, which tell of none."""
    if view.recording.has("page_objects"):
        return view._all("page_objects")
    names = ("page_id", "load", "object", "asked_us", "first_byte_us", "done_us")
    return {name: np.empty(0) for name in names}


def summarise_pages(view: View) -> list[dict[str, Any]]:
    """Of each page: `loads`, those that `finished`, `time_s` (mean, min, p50, p95, p99, max over
    loads), and the same of each of its `objects`. None where there is nothing."""
    return [
        {
            "page": loads.name,
            "cc": loads.cc,
            "bytes": loads.bytes,
            "loads": int(loads.time_s.size),
            "finished": int((~np.isnan(loads.time_s)).sum()),
            "time_s": spread(loads.time_s, SPREAD),
            "objects": [
                {"bytes": float(size), "time_s": spread(loads.objects_s[:, index], SPREAD)}
                for index, size in enumerate(loads.object_bytes)
            ],
        }
        for loads in page_loads(view)
    ]
