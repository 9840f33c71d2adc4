"""What the measured hosts had to do over time: their processors, ports and the memory of TCP.

Recordings of engines without hosts of their own have nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fullpipe.metrics.view import Columns, Floats, View

#: Shares are over windows of this length, as those of a run's health: the kernel counts in 10 ms.
WINDOW_S = 1.0
#: What a processor's time goes to, apart from idling.
KINDS = ("user", "system", "irq", "softirq", "steal")


@dataclass(frozen=True)
class MachineLoad:
    """One machine's processors over windows that end at `end_s`; shares are from 0 to 1."""

    machine: str
    processors: int
    end_s: Floats
    #: Of the busiest processor, in each window.
    busiest: Floats
    #: Kind of KINDS -> mean over processors.
    mean: dict[str, Floats]


def machine_loads(view: View) -> list[MachineLoad]:
    """The machines of a recording; empty where it has none."""
    if not view.recording.has("cpu_samples"):
        return []
    columns = view._all("cpu_samples")
    loads = []
    for machine in sorted({str(name) for name in columns["machine"]}):
        samples = _rows(columns, columns["machine"] == machine)
        each = [_shares(_rows(samples, samples["cpu"] == cpu)) for cpu in np.unique(samples["cpu"])]
        length = min(ends_s.size for ends_s, _, _ in each)
        if length:
            busy = np.array([share[:length] for _, share, _ in each])
            kinds = np.array([share[:, :length] for _, _, share in each]).mean(axis=0)
            mean = dict(zip(KINDS, kinds, strict=True))
            ends_s = each[0][0][:length]
            loads.append(MachineLoad(machine, len(each), ends_s, busy.max(axis=0), mean))
    return loads


def port_rates(view: View) -> dict[str, tuple[Floats, Floats]]:
    """`host nic` -> (times in s, packets received and sent a second since the time before)."""
    if not view.recording.has("nic_samples"):
        return {}
    columns = view._all("nic_samples")
    names = [f"{host} {nic}" for host, nic in zip(columns["host"], columns["nic"], strict=True)]
    rates = {}
    for name in sorted(set(names)):
        samples = _rows(columns, np.array(names) == name)
        keep = _window_ends(samples["t_us"])
        packets = (samples["received_packets"] + samples["sent_packets"])[keep]
        times = samples["t_us"][keep] / 1e6
        rates[name] = (times, np.diff(packets, prepend=0.0) / np.diff(times, prepend=0.0))
    return rates


def tcp_memory(view: View) -> dict[str, tuple[Floats, Floats]]:
    """Machine -> (times in s, bytes that its TCP holds in buffers)."""
    if not view.recording.has("tcp_memory_samples"):
        return {}
    columns = view._all("tcp_memory_samples")
    memory = {}
    for machine in sorted({str(name) for name in columns["machine"]}):
        samples = _rows(columns, columns["machine"] == machine)
        memory[machine] = (samples["t_us"] / 1e6, samples["memory_bytes"])
    return memory


def _rows(columns: Columns, keep: Floats) -> Columns:
    return {name: values[keep] for name, values in columns.items()}


def _window_ends(t_us: Floats) -> npt.NDArray[np.intp]:
    """Positions of the samples that end a window, the first of which begins at 0."""
    windows = np.floor(t_us / 1e6 / WINDOW_S + 1e-3)
    return np.flatnonzero(np.diff(windows, prepend=0.0) > 0)


def _shares(samples: Columns) -> tuple[Floats, Floats, Floats]:
    """(ends of windows in s, busy share by window, share by kind and window) of one processor. How
    long it idled is measured; what it was busy with is what the kernel's ticks met."""
    keep = _window_ends(samples["t_us"])
    spent = np.array([samples[f"{kind}_us"][keep] for kind in (*KINDS, "idle")])
    used = np.diff(spent, prepend=0.0, axis=1)
    passed = np.maximum(np.diff(samples["t_us"][keep], prepend=0.0), 1.0)
    busy = np.clip(1.0 - used[-1] / passed, 0.0, 1.0)
    counted = used[:-1].sum(axis=0)
    scale = np.divide(busy, counted, out=np.zeros_like(busy), where=counted > 0)
    return samples["t_us"][keep] / 1e6, busy, used[:-1] * scale
