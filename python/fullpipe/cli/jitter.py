"""Tries whether results of the simulator are a knife edge: the same runs with a little jitter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.engines.run import Run


def knife_edges(
    runs: Mapping[str, Sequence[Run]],
    summaries: Mapping[str, Sequence[dict[str, Any]]],
    jobs: int | None = None,
) -> dict[str, str]:
    """What to say of the groups of runs of one scenario each that agree and that jitter changes,
    by the groups' names. Without those that were not tried: few runs, another engine, a path with
    jitter of its own or with an RTT to which it is not little."""
    from fullpipe.metrics.knife_edge import agree, sentence

    jittered = {
        name: _with_jitter(runs[name])
        for name, measured in summaries.items()
        if len(runs[name]) == len(measured) and agree(measured)
    }
    measured = _measured([run for group in jittered.values() for run in group], jobs)
    if measured is None:
        return {}
    edges = {}
    for name, group in jittered.items():
        with_jitter, measured = measured[: len(group)], measured[len(group) :]
        if group and (edge := sentence(summaries[name], with_jitter)):
            edges[name] = edge
    return edges


def _with_jitter(runs: Sequence[Run]) -> list[Run]:
    """The same runs with jitter; none where it is not to be tried."""
    import tomli_w

    from fullpipe.base.toml import parse_toml
    from fullpipe.engines.run import runs_of
    from fullpipe.metrics.knife_edge import JITTER, LEAST_RTT_S
    from fullpipe.scenario.model import make_scenario

    first = runs[0]
    path = first.plan["path"]
    rtt_s = (path["forward_delay_ns"] + path["reverse_delay_ns"]) / 1e9
    has_jitter = any(flow.get("jitter") for flow in first.plan["flows"])
    document = parse_toml(first.text)
    if first.engine != "sim" or "path" not in document or has_jitter or rtt_s < LEAST_RTT_S:
        return []
    # The runs' texts differ in their seeds alone.
    document["path"]["jitter"] = JITTER
    seeds = [run.seed for run in runs]
    text = tomli_w.dumps(document)
    return runs_of(make_scenario(document), text, seeds, first.engine, first.options)


def _measured(runs: Sequence[Run], jobs: int | None) -> list[dict[str, Any]] | None:
    """The summaries of runs whose recordings nobody keeps; None where one failed."""
    from fullpipe.base.scratch import scratch
    from fullpipe.engines.runner import execute
    from fullpipe.metrics import summarise

    if not runs:
        return None
    with scratch("fullpipe-jitter-") as folder:
        folders = [folder / f"run-{index:03d}" for index in range(len(runs))]
        with progress("with jitter", sum(run.duration_ns for run in runs) / 1e9) as update:
            outcome = execute(runs, folders, update, jobs)
        whole = len(outcome.recordings) == len(runs) and not outcome.failures
        return [summarise(recording) for recording in outcome.recordings] if whole else None
