"""Plots of what the measured hosts had to do: processors, ports, TCP's memory."""

from __future__ import annotations

from fullpipe.base.units import MIB
from fullpipe.metrics import View
from fullpipe.metrics.hosts import KINDS, WINDOW_S, machine_loads, port_rates, tcp_memory
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace, thin

#: More ports than this in one plot cannot be told apart.
MAX_PORTS = 8


def host_plots(view: View) -> list[Plot]:
    """Over time; empty where the engine has no hosts of its own."""
    return [_processors(view), _ports(view), _memory(view)]


def _processors(view: View) -> Plot:
    traces = []
    loads = machine_loads(view)
    for position, load in enumerate(loads):
        prefix = f"{load.machine}: " if len(loads) > 1 else ""
        dash = style.dash(position)
        busiest = "busiest" if load.processors > 1 else "busy"
        x, y = thin(load.end_s, 100 * load.busiest)
        traces.append(Trace(f"{prefix}{busiest}", style.NEUTRAL, x, y, dash, 1.6, shape="before"))
        for kind in KINDS:
            share = load.mean[kind]
            if share.any():
                x, y = thin(load.end_s, 100 * share)
                colour = style.cc_colour(f"processor {kind}")
                traces.append(Trace(f"{prefix}{kind}", colour, x, y, dash, 1.0, shape="before"))
    return Plot(
        "cpu",
        "Processors of the measured machine",
        x_title="time (s)",
        y_title="share of time (%)",
        traces=traces,
        over_time=True,
        note=f"in windows of {WINDOW_S:g} s; kinds are means over processors, as the kernel's "
        "ticks met them; near 100 % the machine is a part of the result",
    )


def _ports(view: View) -> Plot:
    traces = []
    for position, (name, (times, rates)) in enumerate(list(port_rates(view).items())[:MAX_PORTS]):
        x, y = thin(times, rates / 1e3)
        colour, opacity = style.NEUTRAL, style.opacity(position)
        dash = style.dash(position)
        traces.append(Trace(name, colour, x, y, dash, 1.2, opacity, shape="before"))
    return Plot(
        "nic",
        "Packets through the hosts' ports",
        x_title="time (s)",
        y_title="thousand packets/s",
        traces=traces,
        over_time=True,
        note="received and sent, as the kernel counts them",
    )


def _memory(view: View) -> Plot:
    traces = []
    for position, (machine, (times, values)) in enumerate(tcp_memory(view).items()):
        x, y = thin(times, values / MIB)
        traces.append(Trace(machine, style.NEUTRAL, x, y, style.dash(position), 1.2))
    return Plot(
        "tcp_memory",
        "Memory in TCP's buffers",
        x_title="time (s)",
        y_title="MiB",
        traces=traces,
        over_time=True,
        note="of the whole machine: both ends of every flow where these are on one",
    )
