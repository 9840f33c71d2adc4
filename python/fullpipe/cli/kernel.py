"""`fullpipe kernel`: fullpipe's congestion controls in this host's kernel, for any program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import parse_time
from fullpipe.cli.options import CcName, Json, parsed
from fullpipe.cli.output import console, message, number, text_table
from fullpipe.engines.base import CcForm

app = typer.Typer(
    help="Loads congestion controls into this host's kernel (root).", no_args_is_help=True
)

_Constants = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="CONSTANT=VALUE", help="Change a constant; repeatable."),
]
_KernelName = Annotated[
    str | None,
    typer.Option("--name", metavar="KERNEL_NAME", help="Name in the kernel, instead of fp_..."),
]
_As = Annotated[
    CcForm,
    typer.Option("--as", help="What the kernel gets: eBPF, or a module built for it."),
]


@app.command()
def load(
    name: CcName, set_: _Constants = None, kernel_name: _KernelName = None, as_: _As = "ebpf"
) -> None:
    """Loads a congestion control into this host's kernel.

    It stays until `unload` or the next boot. Programs choose it by its kernel name."""
    from fullpipe import kernel

    wanted = kernel.request(name, _overrides(set_), kernel_name, as_)
    kernel.load(wanted)
    chosen = wanted.kernel_name
    message(f"{chosen} is loaded: iperf3 -C {chosen}, setsockopt(TCP_CONGESTION), or for all")
    message(f"programs: sysctl net.ipv4.tcp_congestion_control={chosen}")


@app.command()
def module(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Congestion controls.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder; default: fullpipe-cc-VERSION."),
    ] = None,
    dkms: Annotated[
        bool, typer.Option("--dkms", help="Add what DKMS needs to build it for each new kernel.")
    ] = False,
) -> None:
    """Writes the sources of a kernel module with these algorithms.

    It builds out of the kernel's tree, for kernels without BTF or struct_ops too."""
    import fullpipe
    from fullpipe.congestion import module as package
    from fullpipe.congestion.registry import cc_set

    folder = out or Path(f"{package.PACKAGE}-{fullpipe.__version__}")
    package.write_package([cc_set(name) for name in names], folder, dkms)
    message(f"the sources are in {folder}; its README says how to build, load and sign the module")
    if dkms:
        message(f"as root: cp -r {folder} /usr/src/{package.PACKAGE}-{fullpipe.__version__}")
        message(f"         dkms install {package.PACKAGE}/{fullpipe.__version__}")


@app.command("list")
def list_(json_: Json = False) -> None:
    """Lists what is loaded, with changed constants and sockets."""
    from fullpipe import kernel

    loaded = kernel.list_loaded()
    if json_:
        items = [
            {
                "kernel_name": item.kernel_name,
                "algorithm": item.algorithm,
                "name": item.base.name,
                "changes": item.changes,
                "sockets": item.sockets,
                "opened": item.opened,
                "is_registered": item.is_registered,
                "form": "module" if item.is_module else "ebpf",
                "constants": {
                    param.name: param.value(value)
                    for param, value in zip(item.base.params, item.params, strict=False)
                },
            }
            for item in loaded
        ]
        print(json.dumps(items))
        return
    if not loaded:
        message("nothing is loaded")
        return
    table = text_table("in the kernel", "is", "with", right=("sockets", "ever"))
    for item in loaded:
        mark = " (module)" if item.is_module else ""
        mark += "" if item.is_registered else " (unloaded)"
        changes = ", ".join(f"{name}={value:g}" for name, value in item.changes.items())
        table.add_row(
            item.kernel_name + mark, item.base.name, changes, str(item.sockets), str(item.opened)
        )
    console.print(table)


@app.command()
def unload(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name of `fullpipe kernel list`, or its set.")
    ],
) -> None:
    """Unloads a congestion control.

    Sockets that use it keep it until they close."""
    from fullpipe import kernel

    kernel_name, sockets = kernel.unload(name)
    left = f"; {sockets} sockets keep it until they close" if sockets else ""
    message(f"{kernel_name} is unloaded{left}")
    stays = kernel.left_module()
    if stays is not None:
        message(f"the module is still in the kernel: `rmmod {stays}`, once they are closed")


@app.command()
def trace(
    name: CcName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File for the trace.")],
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="`--` and the program to run.")
    ],
    set_: _Constants = None,
    kernel_name: _KernelName = None,
    as_: _As = "ebpf",
) -> None:
    """Records the kernel's calls of a congestion control.

    Loads it, runs a program that chooses it by its kernel name, and writes every call for
    `fullpipe replay`."""
    from fullpipe import kernel

    kernel.trace(kernel.request(name, _overrides(set_), kernel_name, as_), out, command)
    message(f"the trace is in {out}: fullpipe replay {out}")


@app.command()
def watch(
    interval: Annotated[str, typer.Option(help="Time between two samples.")] = "1s",
    count: Annotated[
        int | None, typer.Option(min=1, help="Number of samples; by default until Ctrl-C.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a recording, which `fullpipe report` draws."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print a line of JSON per sample.")] = False,
) -> None:
    """Shows the sockets that run fullpipe's congestion controls.

    Phase, bandwidth, windows and bounds come from the algorithm's own state, which `ss` cannot
    show. Ctrl-C ends it."""
    interval_ms = parsed("--interval", parse_time, interval) // 10**6
    if not 10 <= interval_ms <= 3600_000:
        raise UserError(f"--interval {interval}: must be 10ms to 3600s")
    from fullpipe import kernel

    samples = kernel.watch(interval_ms, record, count)
    try:
        if json_:
            for rows in samples:
                print(json.dumps(rows), flush=True)
        else:
            _show(samples)
    except KeyboardInterrupt:
        pass  # how a watch normally ends
    finally:
        samples.close()
    if record is not None:
        message(f"recording: {record}; fullpipe report {record}")


def _show(samples: Iterator[list[dict[str, Any]]]) -> None:
    if console.is_terminal:
        from rich.live import Live

        with Live(console=console, auto_refresh=False, transient=False) as live:
            for rows in samples:
                live.update(_sockets(rows), refresh=True)
        return
    for rows in samples:
        console.print(_sockets(rows), soft_wrap=True)


def _sockets(rows: list[dict[str, Any]]) -> str:
    """Three lines a socket, and one of the variables that only its algorithm has; lo and hi are the
    bounds inflight_shortterm and inflight_longterm."""
    lines = []
    for row in rows:
        lines += [
            f"{row['flow']}  {row['cc']}  {row['phase'] or '-'}",
            f"  Mbit/s: bw {number(row['bw_bps'], 1e6, 1)}, "
            f"delivery {number(row['delivery_rate_bps'], 1e6, 1)}; "
            f"RTT ms: {number(row['srtt_us'], 1e3, 1)}, min {number(row['min_rtt_us'], 1e3, 1)}",
            f"  packets: cwnd {number(row['cwnd_packets'], 1, 0)}, "
            f"inflight {number(row['inflight_packets'], 1, 0)}, "
            f"lo {number(row['inflight_shortterm_packets'], 1, 0)}, "
            f"hi {number(row['inflight_longterm_packets'], 1, 0)}",
        ]
        variables = [
            f"{name} {'-' if value is None else f'{value:g}'}"
            for name, value in row["variables"].items()
        ]
        lines += [f"  {', '.join(variables)}"] if variables else []
    return "\n".join(lines) or "no socket uses them now"


def _overrides(texts: list[str] | None) -> dict[str, float]:
    overrides = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        try:
            if not (name and equals):
                raise ValueError
            overrides[name] = float(value)
        except ValueError:
            raise UserError(f"--set {text}: must be NAME=VALUE, such as loss_thresh=0.02") from None
    return overrides
