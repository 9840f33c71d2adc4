"""Metadata of recordings that were imported, from Flent's files and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import fullpipe
from fullpipe.flent.document import FlentFile, clean, number
from fullpipe.flent.identity import Identity, identify, mislabelled
from fullpipe.flent.series import FlowTotal, file_step, flow_totals, stands_on_its_grid


def describe(
    file: FlentFile, totals: Sequence[FlowTotal], identities: Sequence[Identity], last_us: int
) -> dict[str, Any]:
    """The metadata: engine `flent`, and under `flent` what ran and where it came from. `last_us` is
    the time of the last sample."""
    planned_us = (file.seconds("TOTAL_LENGTH") or 0.0) * 1e6
    plan = {
        "name": file.label,
        "duration_ns": round(max(planned_us, last_us) * 1000),
        "sample_interval_ns": round(file_step(file) * 1e9),
    }
    about = {
        "file": clean(file.path.name),
        "sha256": file.sha256,
        "format_version": file.version,
        "t0_unix_s": file.t0,
        **{key.lower(): file.text(key) for key in _TEXTS},
        **{f"{key.lower()}_s": file.seconds(key) for key in _SECONDS},
        "test_parameters": _flat(file.metadata.get("TEST_PARAMETERS")),
        "hosts": _texts(file.metadata.get("HOSTS")),
        "egress": _egress(file.metadata.get("EGRESS_INFO")),
        "flows": [
            {**asdict(identity), "total_by_netperf": total.certain}
            for identity, total in zip(identities, totals, strict=True)
        ],
        "queues": {queue: clean(series) for queue, series in queues(file).items()},
        "left_out": left_out(file)[:50],
        "warnings": _warnings(file, totals, identities),
    }
    return metadata_of("flent", plan, about, kernel=file.text("KERNEL_RELEASE") or None)


def metadata_of(
    engine: str,
    plan: Mapping[str, Any],
    about: Mapping[str, Any],
    kernel: str | None = None,
    is_whole: bool = True,
) -> dict[str, Any]:
    """The metadata of an imported recording. `engine`: what made the file, under whose name `about`
    has what is known of it; `plan`: its name, duration and sample interval."""
    return {
        "engine": engine,
        "fullpipe_version": fullpipe.__version__,
        "plan": dict(plan),
        "seed": None,
        "warmup_ns": 0,
        "constants": {},
        "kernel": kernel,
        "health": {"problems": []},
        "interrupted": not is_whole,
        "failure": None,
        engine: dict(about),
    }


def left_out(file: FlentFile) -> list[str]:
    """Names of the measured series that have no place in a recording."""
    carried = {*(name for name, _ in file.flows), *file.pings, *queues(file).values()}
    return [
        clean(name)
        for name in sorted(file.raw)
        if len(file.raw[name]) and name not in carried and not file.is_computed(name)
    ]


def queues(file: FlentFile) -> dict[str, str]:
    """Name of the queue in the recording -> series. The local host's, which uploads leave by, is
    `forward`; others keep the name of their host."""
    return {"forward" if h == "localhost" else h: name for h, name in file.qdiscs.items()}


def warnings_of(file: FlentFile) -> list[str]:
    """Sentences on what in this file is not what it seems: labels, missing totals, failures."""
    return _warnings(file, flow_totals(file), identify(file))


def _warnings(
    file: FlentFile, totals: Sequence[FlowTotal], identities: Sequence[Identity]
) -> list[str]:
    problems = mislabelled(file, identities)
    guessed = [
        clean(total.series)
        for total in totals
        if file.meta_number(total.series, "MEAN_VALUE") is None
        and not stands_on_its_grid(file, total.series)
    ]
    if guessed:
        problems.append(
            f"no netperf total for {len(guessed)} flow(s) (such as {guessed[0]}): "
            "interim results are added up instead"
        )
    if lost := [clean(name) for name in file.unmeasured]:
        problems.append(f"{len(lost)} flow(s) left out without any value (such as {lost[0]})")
    grids = [total.series for total in totals if stands_on_its_grid(file, total.series)]
    if grids:
        problems.append(
            f"no raw values of {len(grids)} flow(s) (such as {clean(grids[0])}): Flent's "
            "interpolated ones stand in for them"
        )
    failed = file.metadata.get("FAILED_RUNNERS")
    if failed:
        count = number(failed, f"{file.path}: metadata.FAILED_RUNNERS")
        problems.append(f"{count:g} of Flent's tools failed")
    if file.metadata.get("FAKE_RAW_VALUES"):
        problems.append("no raw values: Flent's interpolated ones stand in for them")
    return problems


_TEXTS = ("NAME", "TITLE", "TIME", "DATA_FILENAME", "FLENT_VERSION", "HOST", "LOCAL_HOST", "NOTE")
_SECONDS = ("LENGTH", "TOTAL_LENGTH", "STEP_SIZE")


def _egress(value: Any) -> dict[str, Any]:
    """The sending host's qdiscs, driver and link as Flent saw them."""
    if not isinstance(value, dict):
        return {}
    qdiscs = value.get("qdiscs")
    listed = qdiscs if isinstance(qdiscs, list) else []
    names = [qdisc.get("name") for qdisc in listed if isinstance(qdisc, dict)]
    return {"qdiscs": _texts(names), **_flat({k: value.get(k) for k in ("iface", "driver")})}


def _flat(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    pairs = [(k, v) for k, v in value.items() if isinstance(v, (str, int, float))]
    return {clean(k): clean(v if isinstance(v, str) else repr(v)) for k, v in pairs[:50]}


def _texts(value: Any) -> list[str]:
    return [clean(v) for v in value[:50] if isinstance(v, str)] if isinstance(value, list) else []
