"""Groups of Flent files for a comparison: by runs and bytes, or, to reproduce a paper, by samples
of Flent's interpolated series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.base.errors import UserError
from fullpipe.flent.container import FlentError
from fullpipe.flent.description import left_out
from fullpipe.flent.document import FlentFile, Floats, clean
from fullpipe.flent.identity import identify
from fullpipe.flent.series import flow_totals, interpolated, ping_rtts_ms
from fullpipe.statistics.groups import Groups, by_run, pseudo_replicates


@dataclass(frozen=True)
class ByBytes:
    """One file by bytes: `rate_bps` is the sum of its flows' rates, `elapsed_s` the longest flow,
    `ran` what ran in them."""

    group: str
    file: str
    ran: str
    direction: str
    flows: int
    bytes_delivered: int
    elapsed_s: float
    rate_bps: float


def run_groups(files: Sequence[FlentFile], series: str) -> Groups:
    """Groups by label, one number a file: Mbit/s by bytes, or with series `ping` the mean of the
    raw round-trip times in ms.

    Raises UserError if a group has a single file: nothing then says how runs vary."""
    if series not in ("throughput", "ping"):
        raise UserError(
            f"--series {series}: by bytes there are throughput and ping; any series of "
            "the file needs --flent-interpolation"
        )
    numbers: dict[str, list[float]] = {}
    for file in files:
        value = by_bytes(file).rate_bps / 1e6 if series == "throughput" else _mean_ping(file)
        numbers.setdefault(file.label, []).append(value)
    single = [label for label, values in numbers.items() if len(values) < 2]
    if single and len(numbers) > 1:
        raise UserError(
            f"group {single[0]!r} has one run, and runs are the unit of repetition: name more "
            "files of it, or add --flent-interpolation to treat samples as repetitions, as papers "
            "did"
        )
    return by_run(numbers)


def sample_groups(
    files: Sequence[FlentFile], series: str, samples: int | None
) -> tuple[Groups, list[str]]:
    """Groups by label, each number a value on Flent's grid: the first `samples` that are no gaps
    of each file. Also sentences on files that have fewer."""
    values: dict[str, list[Floats]] = {}
    short = []
    for file in files:
        grid_values = interpolated(file, series)
        if samples is not None and grid_values.size < samples:
            short.append(f"{file.path.name}: has {grid_values.size} values, fewer than {samples}")
        values.setdefault(file.label, []).append(grid_values[:samples])
    return pseudo_replicates(values), short


def by_bytes(file: FlentFile) -> ByBytes:
    """The uploads of a file by bytes, or its downloads where it has no upload.

    Raises FlentError if it has neither."""
    return both_by_bytes(file)[0]


def both_by_bytes(file: FlentFile) -> list[ByBytes]:
    """The uploads and the downloads of a file by bytes, those that it has.

    Raises FlentError if it has neither."""
    totals, identities = flow_totals(file), identify(file)
    comparisons = []
    for direction in ("up", "down"):
        flows = [total for total in totals if total.direction == direction]
        names = [
            identity.name
            for identity, total in zip(identities, totals, strict=True)
            if total.direction == direction
        ]
        if flows:
            comparisons.append(
                ByBytes(
                    group=file.label,
                    file=file.path.name,
                    ran=", ".join(dict.fromkeys(names)),
                    direction=direction,
                    flows=len(flows),
                    bytes_delivered=sum(flow.bytes_delivered for flow in flows),
                    elapsed_s=max(flow.elapsed_s for flow in flows),
                    rate_bps=sum(flow.rate_bps for flow in flows),
                )
            )
    if not comparisons:
        has = ", ".join([*map(clean, file.pings), *left_out(file)][:12])
        raise FlentError(f"{file.path}: has no TCP flow; it has {has or 'no measured series'}")
    return comparisons


def _mean_ping(file: FlentFile) -> float:
    rtts = ping_rtts_ms(file)
    if not rtts.size:
        raise FlentError(f"{file.path}: has no ping")
    return float(rtts.mean())
