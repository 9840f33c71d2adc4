"""`fullpipe model`: what the theories predict, without a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import NS_PER_S, format_size, parse_buffer, parse_rate, parse_time
from fullpipe.cli.options import Changes, Figures, Json, ScenarioFile, parsed
from fullpipe.cli.output import console, message, percent, text_table
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.models.domain import Caution, Contest
    from fullpipe.models.extended import ExtendedResult
    from fullpipe.models.fluid import FluidResult
    from fullpipe.models.validate import Validation

app = typer.Typer(help="Predicts by theory, without a run.", no_args_is_help=True)

#: Rows of a trace that is printed as JSON.
TRACE_ROWS = 2000


@app.command()
def share(
    cc: Annotated[str, typer.Option(help="bbr1, bbr2 or bbr3.")],
    n: Annotated[int, typer.Option(help="Number of BBR flows.")],
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck, such as 10mbit.")],
    rtt: Annotated[str, typer.Option(help="Base RTT, such as 40ms.")],
    buffer: Annotated[str, typer.Option(help="Drop-tail buffer, such as 8bdp or 64KB.")],
    against: Annotated[str, typer.Option(help="cubic or reno.")] = "cubic",
    against_n: Annotated[int, typer.Option(help="Number of loss-based flows.")] = 1,
    model: Annotated[str, typer.Option(help="best, steady, extended or fluid.")] = "best",
    json_: Json = False,
) -> None:
    """Predicts the share of BBR flows against loss-based ones."""
    from fullpipe.models.domain import as_json
    from fullpipe.models.share import predict_share

    contest = _contest(cc, n, against, against_n, rate, rtt, buffer)
    with progress("share", 1.0) as update:
        prediction = predict_share(contest, model, on_progress=update)
    if json_:
        document = {
            "share": prediction.share,
            "model": prediction.model,
            "cc": cc,
            "n": n,
            "against": against,
            "against_n": against_n,
            "rate_bps": contest.rate_bps,
            "rtt_s": contest.rtt_s,
            "buffer_bdp": contest.buffer_bdp,
            "details": prediction.details,
            "warnings": as_json(prediction.cautions),
        }
        print(json.dumps(document))
        return
    console.print(f"{prediction.share:.4f} of capacity for {n} x {cc}, by the {prediction.model}")
    for key, value in prediction.details.items():
        shown = f"{value:.6g}" if isinstance(value, float) else value
        console.print(f"  {key} = {shown}")
    _warn(prediction.cautions)


def _contest(
    cc: str, n: int, against: str, against_n: int, rate: str, rtt: str, buffer: str
) -> Contest:
    from fullpipe.models.domain import FRAME_BYTES, Contest

    rate_bps = parsed("--rate", parse_rate, rate)
    rtt_s = parsed("--rtt", parse_time, rtt) / NS_PER_S
    if rtt_s <= 0:
        raise UserError(f"--rtt {rtt}: must be above 0, such as 40ms")
    limit = parsed("--buffer", parse_buffer, buffer)
    size = {"bdp": 0.0, "bytes": 1.0, "packets": float(FRAME_BYTES)}[limit.kind]
    bdp = size * limit.value * 8 / (rate_bps * rtt_s) if size else limit.value
    return Contest(cc, n, against, rate_bps, rtt_s, bdp, against_n)


def _warn(cautions: Sequence[Caution]) -> None:
    for caution in cautions:
        message(f"warning: {caution}")


@app.command()
def fluid(
    scenario: ScenarioFile,
    model: Annotated[
        Literal["auto", "published", "extended"],
        typer.Option(help="auto: extended where BBRv3 runs, else published."),
    ] = "auto",
    step: Annotated[
        str | None, typer.Option(help="Step of the integration, such as 10us (published).")
    ] = None,
    set_: Changes = None,
    json_: Json = False,
) -> None:
    """Integrates a fluid model over a scenario.

    Prints rates, shares, loss and the queue; with --json also a trace."""
    from fullpipe.models.extended import run_extended
    from fullpipe.models.fluid import run_fluid
    from fullpipe.models.plans import extended_run, fluid_run, read_plan
    from fullpipe.plan.resolve import resolve
    from fullpipe.scenario.model import load_scenario

    loaded = load_scenario(scenario, set_ or [])
    reading = read_plan(resolve(loaded))
    warmup_s = loaded.warmup / NS_PER_S
    sample_ms = reading.duration_s * 1000 / TRACE_ROWS if json_ else None
    if model == "extended" or (model == "auto" and "bbr3" in reading.ccs):
        if step is not None:
            raise UserError("--step: the extended model's step is a part of the RTT; leave it out")
        extended, cautions = extended_run(reading, warmup_s)
        extended = replace(extended, sample_interval_ms=_at_least(sample_ms, 1.0))
        with progress("fluid", reading.duration_s) as update:
            result = run_extended([extended], [reading.seed], on_progress=update)[0]
        _show(_extended_document(result, reading.names), cautions, json_)
        return
    run, order, cautions = fluid_run(reading, warmup_s)
    run = replace(run, sample_interval_ms=_at_least(sample_ms, 1.0))
    if step is not None:
        run = replace(run, step_ms=parsed("--step", parse_time, step) / 1e6)
    with progress("fluid", reading.duration_s) as update:
        published = run_fluid([run], on_progress=update)[0]
    _show(_fluid_document(published, [reading.names[i] for i in order]), cautions, json_)


def _at_least(value: float | None, least: float) -> float | None:
    return None if value is None else max(value, least)


def _fluid_document(result: FluidResult, names: Sequence[str]) -> dict[str, Any]:
    from fullpipe.models.domain import FRAME_BYTES

    run = result.run
    flows = [
        {
            "cc": name,
            "base_rtt_ms": 2 * (run.link_delay_ms + delay),
            "share": delivered,
            "sending_share": sent,
        }
        for name, delay, delivered, sent in zip(
            names, run.access_delays_ms, result.delivery_share, result.sending_share, strict=True
        )
    ]
    return {
        "model": "published fluid model (IMC 2022)",
        "flows": flows,
        "jain": result.jain_index,
        "loss": result.loss_discrete,
        "loss_smooth": result.loss_smooth,
        "queue_bytes": result.queue_segments * FRAME_BYTES,
        "occupancy": result.occupancy,
        "utilisation": result.utilisation,
        "jitter_ms": result.jitter_ms,
        "buffer_link_bdp": run.buffer_link_bdp,
        "trace": result.trace,
    }


def _extended_document(result: ExtendedResult, names: Sequence[str]) -> dict[str, Any]:
    from fullpipe.models.domain import FRAME_BYTES

    run = result.run
    flows = [
        {
            "cc": name,
            "base_rtt_ms": rtt * 1000,
            "share": wire,
            "goodput_share": goodput,
            "loss": loss,
        }
        for name, rtt, wire, goodput, loss in zip(
            names, run.rtts_s, result.wire_share, result.goodput_share, result.loss, strict=True
        )
    ]
    return {
        "model": "extended fluid model",
        "flows": flows,
        "jain": result.jain_index,
        "loss": sum(
            loss * share for loss, share in zip(result.loss, result.wire_share, strict=True)
        ),
        "queue_bytes": result.queue_segments * FRAME_BYTES,
        "occupancy": result.queue_segments * FRAME_BYTES / run.buffer_bytes,
        "utilisation": result.utilisation,
        "trace": result.trace,
    }


def _show(document: dict[str, Any], cautions: Sequence[Caution], json_: bool) -> None:
    from fullpipe.models.domain import as_json

    if json_:
        print(json.dumps({**document, "warnings": as_json(cautions)}))
        return
    table = text_table("flow", right=("base RTT ms", "share"))
    for flow in document["flows"]:
        table.add_row(flow["cc"], f"{flow['base_rtt_ms']:.1f}", f"{flow['share']:.4f}")
    console.print(table)
    console.print(
        f"{document['model']}: Jain {document['jain']:.3f}, loss {percent(document['loss'])}, "
        f"queue {format_size(document['queue_bytes'])} ({percent(document['occupancy'])} of the "
        f"buffer), utilisation {percent(document['utilisation'])}"
    )
    _warn(cautions)


@app.command("validate")
def validate_(
    observed: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV of observed shares; see models.md.")
    ],
    figures: Figures = None,
    json_: Json = False,
) -> None:
    """Compares the models with observed shares.

    Prints the mean squared error of each panel and overall."""
    from fullpipe.models.figure import write_figures
    from fullpipe.models.observed import read_observed
    from fullpipe.models.validate import validate

    panels = read_observed(observed)
    with progress("validate", 1.0) as update:
        validation = validate(panels, update)
    written = write_figures(validation, figures) if figures is not None else []
    if json_:
        print(json.dumps(_validation_document(validation, [str(path) for path in written])))
        return
    table = text_table("panel", "BBR", "against", "path", "model", right=("points", "MSE"))
    for line in validation.lines:
        first = line.panel.points[0].contest
        path = f"{first.rate_bps / 1e6:g} Mbit/s {first.rtt_s * 1000:g} ms"
        table.add_row(
            line.panel.figure,
            first.cc,
            first.against,
            path,
            line.model,
            str(len(line.shares)),
            f"{line.mse:.5f}",
        )
    for (model, version), (mse, points) in validation.overall().items():
        table.add_row("all", version, "", "", model, str(points), f"{mse:.5f}")
    console.print(table)
    for note in _notes(validation):
        console.print(note)
    for file in written:
        message(f"wrote {file}")


def _notes(validation: Validation) -> list[str]:
    from fullpipe.models.validate import PUBLISHED

    published = [line for line in validation.lines if line.panel.version == "bbr1"]
    if not published:
        return []
    figures = " and ".join(f"{value:g} ({name})" for name, value in PUBLISHED.items())
    notes = [f"Published for BBRv1 over panels 2a, 2b and 2c together, 126 points: {figures}."]
    missing = validation.missing_panels()
    if missing:
        notes.append(
            f"Panels {', '.join(missing)} are not in this file: the numbers above are over the "
            "panels that are, and need not equal the published ones."
        )
    notes.append(
        "As published: the steady state counts 1500-byte packets and no headers; the fluid model's "
        "buffer is in BDP of the link (a quarter of the RTT), its share is sent, not delivered, "
        "and segments/ms are taken times 10 for Mbit/s (12.112 would be right). Consistent: buffer "
        "in BDP of the RTT, goodput over capacity, units converted. Both run 9 s of which the last "
        "5 count."
    )
    return notes


def _validation_document(validation: Validation, figures: list[str]) -> dict[str, Any]:
    from fullpipe.models.validate import PUBLISHED

    return {
        "panels": [
            {
                "figure": line.panel.figure,
                "bbr_version": line.panel.version,
                "model": line.model,
                "mse": line.mse,
                "points": len(line.shares),
                "shares": list(line.shares),
                "observed": [point.share for point in line.panel.points],
            }
            for line in validation.lines
        ],
        "overall": [
            {"model": model, "bbr_version": version, "mse": mse, "points": points}
            for (model, version), (mse, points) in validation.overall().items()
        ],
        "published": PUBLISHED,
        "missing_panels": validation.missing_panels(),
        "notes": _notes(validation),
        "figures": figures,
    }
