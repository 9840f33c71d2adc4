"""Engine `vm`: a Linux kernel on a virtual clock. Idle time is skipped, the host's load has no
effect, and the same plan gives the same tables. The machine is QEMU with instruction counting,
which runs any stock kernel, or User Mode Linux, whose processor takes no time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import module, userfiles
from fullpipe.congestion.registry import sets_of, state_bytes_of
from fullpipe.engines import assets
from fullpipe.engines.arrivals import refuse_many_flows, with_arrivals
from fullpipe.engines.base import CcForm, MachineName, Progress, RunResult, engine
from fullpipe.engines.ecn import refuse_accurate_ecn, refuse_ecn
from fullpipe.engines.host import refuse_host
from fullpipe.engines.rows import refuse_links, with_steps
from fullpipe.engines.streams import decoded
from fullpipe.engines.tables import arrow_tables
from fullpipe.engines.unfinished import with_totals
from fullpipe.engines.vm import (
    captures,
    hardware,
    headers,
    image,
    kernels,
    machine,
    private_state,
    shared,
    uml,
    uml_kernel,
    vmlinux,
    watch,
    web,
)
from fullpipe.engines.vm.hardware import Hardware, memory_mib
from fullpipe.engines.vm.shared import Job
from fullpipe.plan.plan import Plan

_NO_QEMU = f"--engine vm needs {hardware.PROGRAM}; `fullpipe doctor --install` installs it"
#: Bytes of frames: a row of flow or algorithm samples, at most; and of everything else.
_ROW_BYTES = 160
_STREAM_SPARE_MIB = 4
#: How often the agent samples its machine, and the ports of how many hosts
#: (crates/fullpipe-agent/src/sample/host.rs).
_HOST_INTERVAL_NS = 100_000_000
_HOSTS_LOOKED_AT = 64
#: Where the guest keeps a trace until the run's end; the ring buffer of each algorithm; calls a
#: packet, at most.
_TRACE_IN_GUEST = "/run/cc.trace"
_TRACE_RING_MIB = 64
_TRACE_CALLS_PER_PACKET = 4
_MEMORY_MIB = 512
_MEMORY_PER_FLOW_MIB = 24
#: Memory for the send buffers of short flows, independent of how many run at once.
_MEMORY_OF_TRAFFIC_MIB = 256
#: Bytes of the guest's memory for each byte in flight: 2304 for a packet of 1448, and half of the
#: memory is TCP's (crates/fullpipe-agent/src/vm.rs).
_MEMORY_PER_FLIGHT = 4


class VmEngine:
    """The virtual machine."""

    name = "vm"

    def check(self, plan: Plan, options: Mapping[str, Any] | None = None) -> None:
        """Raises UserError if the machine, its kernel or something that the plan needs is missing.
        Without options: if no machine here could run it."""
        self._refuse(plan)
        if options is not None:
            _machine(plan, options)
        elif not hardware.is_there() and not uml_kernel.versions():
            raise UserError(_NO_QEMU)

    def _refuse(self, plan: Plan) -> None:
        """Raises UserError for plans that no machine here can run, whatever its kernel."""
        refuse_links(plan, self.name)
        refuse_many_flows(plan, self.name)
        refuse_host(plan, self.name)
        refuse_ecn(plan, self.name)
        assets.refuse_stacks(plan, self.name)
        assets.refuse_classes(plan)

    def run(self, plan: Plan, progress: Progress, options: Mapping[str, Any]) -> RunResult:
        """Runs the plan; options `machine` (`qemu`, the default, `uml`, or `auto`: `uml` where its
        kernel is built and the plan fits), `kernel` (a version or the path of an image), `modules`,
        `module` (one that the user built, or eBPF programs, whose congestion controls flows name as
        kernel:NAME),
        `cc_form` (`ebpf` or `module`: how the kernel gets ours; eBPF in QEMU, but for
        files of a kernel),
        `cc_trace` (a file for every call of our congestion controls, for `fullpipe replay`), `pcap`
        (a file of the packets at the path's near end; that of the far end is beside it),
        `cc_cost` (the kernel measures our programs and, through one of them, its own CUBIC; the
        result is `facts.cc_cost` of the metadata, JSON), `background_processes` (started on the
        measured host every 110 ms), `from_snapshot` (False: always boot), `web` (True: this host's
        curl loads pages from its lighttpd)."""
        self._refuse(plan)
        chosen = _machine(plan, options)
        is_uml, kernel = chosen.is_uml, chosen.kernel
        stock = {}
        if options.get("web"):
            web.refuse_pages(plan)
            stock = web.programs()
        trace = options.get("cc_trace")
        trace_mib = _trace_mib(plan) if trace else 0
        pcap = Path(options["pcap"]) if options.get("pcap") else None
        capture_mib = 0
        if pcap is not None:
            captures.refuse(pcap)
            capture_mib = captures.mib(plan)
        guest_plan = with_arrivals(with_steps(plan))
        request: dict[str, Any] = {
            "plan": guest_plan,
            "clock": "virtual",
            "objects": "/bpf",
            "cc_trace": _TRACE_IN_GUEST if trace else None,
            "capture": pcap is not None,
            "background_processes": int(options.get("background_processes", 0)),
            "web": web.request(stock) if stock else None,
            "peer": None,
        }
        objects = stock | _code(plan, kernel, _form(plan, options, is_uml))
        if module.FILE in objects:
            request["module"] = module.FILE
        if options.get("cc_cost"):
            request["cc_cost"] = True
            objects |= image.counted(plan)
        user_module = Path(options["module"]) if options.get("module") else None
        if user_module is not None:
            file, content = image.own_module(user_module)
            objects[file] = content
            request["inserted"] = [file]
        module_files = image.module_files(kernel)
        job = Job(
            request, image.modules(plan, kernel, module_files, user_module is not None), objects
        )
        layouts = private_state.NONE if is_uml else _layouts(plan, kernel, job)
        request["cc_states"] = bool(layouts.fields)
        initramfs = image.build(kernel, module_files, user_cache() / "initramfs", ready=not is_uml)
        memory = memory_mib(memory_needed_mib(plan) + 2 * trace_mib)
        shared_bytes = shared.size_bytes(job, _stream_mib(guest_plan) + trace_mib + capture_mib)
        if is_uml:
            ended = uml.run(kernel.image, initramfs, memory, shared_bytes, job, progress)
        else:
            built = Hardware(
                vmlinux.unpacked(kernel.image, user_cache() / "vmlinux").resolve(),
                initramfs.resolve(),
                memory,
                shared_bytes,
            )
            ended = machine.run(built, job, progress, bool(options.get("from_snapshot", True)))
        received = decoded(ended.stream, assets.algorithms(plan))
        if trace:
            Path(trace).write_bytes(received["trace"])
        if pcap is not None:
            captures.write(ended.stream, pcap)
        failure = received["failure"]
        if unfinished := None if failure else _unfinished(ended, received["complete"]):
            failure = _cause(plan, unfinished)
        if failure and not received["tables"]["flow_samples"]["t_us"][1] and not ended.interrupted:
            raise RunError(failure)
        facts = dict(received["facts"]) | layouts.facts()
        if is_uml:
            facts["processor"] = "takes no time"
        elif chosen.refused:
            facts["not User Mode Linux"] = chosen.refused
        metadata = {
            "kernel": facts.pop("kernel", kernel.release),
            "kernel_sha256": hashlib.sha256(kernel.image.read_bytes()).hexdigest(),
            "machine": "uml" if is_uml else "qemu",
            "qemu": ended.version,
            "image_sha256": image.digest(initramfs, job.objects),
            "facts": facts,
        }
        if layouts.fields:
            metadata["variables"] = layouts.described()
        health = {"problems": list(received["problems"]), **dict(received["figures"])}
        tables = with_totals(arrow_tables(received["tables"]), plan)
        samples = private_state.with_states(tables["cc_samples"], plan, ended.stream, layouts)
        tables["cc_samples"] = samples
        return RunResult(tables, metadata, health, ended.interrupted, failure)


def _layouts(plan: Plan, kernel: kernels.Kernel, job: Job) -> private_state.Layouts:
    """The fields of the kernel's own congestion controls of a plan."""
    names = image.kernel_ccs(plan)
    modules = image.cc_modules(plan, image.module_files(kernel))
    others = [name for name in names if name not in modules and not image.is_builtin(name, kernel)]
    for file in (job.request or {}).get("inserted", ()):
        # One of the same name takes the place of the kernel's.
        replaced = [name for name in names if file == f"tcp_{name}.ko"]
        modules |= dict.fromkeys([*others, *replaced], job.objects[file])
    unpacked = vmlinux.unpacked(kernel.image, user_cache() / "vmlinux")
    return private_state.layouts(names, modules, unpacked)


def _form(plan: Plan, options: Mapping[str, Any], is_uml: bool) -> str:
    """How the kernel gets our congestion controls: as asked for, else as it can."""
    if options.get("cc_form"):
        return str(options["cc_form"])
    user_algorithms = [name for name in assets.algorithms(plan) if userfiles.is_external(name)]
    if any(
        userfiles.source_of(name).is_kernels
        for name in user_algorithms
        if not userfiles.is_class(name)
    ):
        return "module"  # eBPF cannot carry a file of a kernel
    return uml.form_of(options, is_uml)


def _code(plan: Plan, kernel: kernels.Kernel, form: str) -> dict[str, bytes]:
    """What brings the plan's congestion controls into the machine's kernel: eBPF objects, or a
    kernel module. Raises UserError for an unknown form, or if no module can be built."""
    if form not in get_args(CcForm):
        raise UserError(f"--cc-form {form}: must be {', '.join(get_args(CcForm))}")
    algorithms = assets.algorithms(plan)
    if form == "ebpf" or not algorithms:
        return image.objects(plan)
    sets = [sets_of(algorithm)[0] for algorithm in algorithms]
    return {module.FILE: module.build(sets, headers.tree(kernel)).read_bytes()}


@dataclass(frozen=True)
class _Machine:
    """What runs a plan: User Mode Linux or QEMU, and its kernel. `refused`: why `auto` did not take
    User Mode Linux."""

    is_uml: bool
    kernel: kernels.Kernel
    refused: str


def _machine(plan: Plan, options: Mapping[str, Any]) -> _Machine:
    """The machine that runs the plan. Raises UserError if it or its kernel is not here, or lacks
    what the plan needs."""
    wanted = options.get("machine", "qemu")
    if wanted not in get_args(MachineName):
        raise UserError(f"--machine {wanted}: must be {', '.join(get_args(MachineName))}")
    why = uml.refused(plan, options) if wanted == "uml" else ""
    if why:
        raise UserError(f"--machine uml: {why}")
    refused = _refused_by_uml(plan, options) if wanted == "auto" else ""
    is_uml = wanted != "qemu" and not refused
    if not is_uml and not hardware.is_there():
        raise UserError(_NO_QEMU)
    find = uml_kernel.find if is_uml else kernels.find
    kernel = find(options.get("kernel"), options.get("modules"))
    refuse_accurate_ecn(plan, kernel.release)
    return _Machine(is_uml, kernel, refused)


def _refused_by_uml(plan: Plan, options: Mapping[str, Any]) -> str:
    """Why User Mode Linux cannot run the plan here; empty if it can."""
    try:
        uml_kernel.find(options.get("kernel"), options.get("modules"))
    except UserError as error:
        return str(error)
    return uml.refused(plan, options)


def _unfinished(ended: watch.Ended, complete: bool) -> str | None:
    if complete or ended.interrupted:
        return None
    end = "hung" if ended.silent else "died"
    words = [line.rstrip() for line in ended.console if line.strip()]
    if len(words) < 2:
        return f"the virtual machine {end}; its last messages: {words[0] if words else 'none'}"
    return "\n  ".join([f"the virtual machine {end}; its last messages:", *words])


def _cause(plan: Plan, failure: str) -> str:
    """The failure with what the simulator says of the same plan, if a file of the user's runs in
    it: its line and reason, where a kernel that hangs says nothing."""
    files = [name for name in assets.algorithms(plan) if userfiles.is_external(name)]
    if not files:
        return failure
    try:
        engine("sim").run(plan, lambda _done: True, {})
    except (UserError, RunError) as error:
        return f"{failure}\nthe simulator, of the same scenario: {error}"
    return failure


def memory_needed_mib(plan: Plan) -> int:
    """MiB of guest memory, enough that memory never limits a window."""
    flows = plan["flows"]
    flight = _MEMORY_PER_FLIGHT * _flight_bytes(plan)
    # Pages send like flows. Another memory size would need a snapshot of its own.
    flows_mib = _MEMORY_PER_FLOW_MIB * max(len(flows), 1)
    crowd = _MEMORY_OF_TRAFFIC_MIB if plan.get("traffic") else 0
    return _MEMORY_MIB + flows_mib + crowd + int(flight // 2**20)


def _flight_bytes(plan: Plan) -> int:
    """The most bytes in flight at once: what the links hold in both directions, but no more than
    the flows' send buffers."""
    delayed = (plan["access"], *plan["flows"])
    directions = [link["medium"][way] for link in plan["links"] for way in ("forward", "reverse")]
    delay_ns = sum(_most(way, "delay") for way in directions) + max(
        (path["forward_delay_ns"] or 0) + (path["reverse_delay_ns"] or 0) for path in delayed
    )
    holds = 0
    for way in directions:
        queue = way["qdisc"]
        if queue["limit_bytes"] is not None:
            holds += queue["limit_bytes"]
        else:
            holds += (queue["limit_packets"] or 0) * plan["access"]["mtu_bytes"]
        holds += _most(way, "rate") * delay_ns // (8 * 10**9)
    if plan.get("traffic"):
        return int(holds)
    return int(min(holds, len(plan["flows"]) * plan["host"]["wmem_max_bytes"]))


def _most(way: Mapping[str, Any], quantity: str) -> int:
    """The largest rate or delay of a link over the run; 0 if it is not limited."""
    begins = way["rate_bps" if quantity == "rate" else "delay_ns"] or 0
    most: int = max(begins, *(value for _, value in way.get(f"{quantity}_steps") or [(0, 0)]))
    return most


def _stream_mib(plan: Plan) -> int:
    samples = plan["duration_ns"] // plan["sample_interval_ns"] + 1
    rows = samples * (2 * len(plan["flows"]) + 2 * len(plan["links"]) + 1)
    rows += sum(plan["duration_ns"] // probe["interval_ns"] + 1 for probe in plan["probes"])
    for page in plan.get("pages", []):
        loads = plan["duration_ns"] // max(page["interval_ns"], page["pause_ns"], 1) + 1
        rows += min(loads, page["loads"] or loads) * (len(page["objects"]) + 1)
    for stream in plan.get("datagrams", []):
        pieces = -(-(stream["frame_bytes"] or 1) // stream["payload_bytes"])
        rows += (plan["duration_ns"] // stream["interval_ns"] + 1) * pieces
    looks = plan["duration_ns"] // _HOST_INTERVAL_NS + 1
    rows += looks * (2 + min(_hosts(plan), _HOSTS_LOOKED_AT))
    rows += sum(len(group["source"]["flows"]) for group in plan.get("traffic", []))
    rows_bytes = rows * _ROW_BYTES + samples * _states_bytes(plan)
    return int(rows_bytes // 2**20) + _STREAM_SPARE_MIB


def _hosts(plan: Plan) -> int:
    members: list[Mapping[str, Any]] = [*plan["flows"], *plan["probes"]]
    members += [*plan.get("pages", []), *plan.get("datagrams", [])]
    members += [sender for group in plan.get("traffic", []) for sender in group["senders"]]
    return sum(len({member["hosts"][side] for member in members}) for side in ("near", "far"))


def _states_bytes(plan: Plan) -> int:
    """Bytes of the algorithms' states, which the agent sends unencoded."""
    algorithms = [flow["cc"]["algorithm"] for flow in plan["flows"]]
    return sum(
        private_state.STATE_BYTES if name is None else state_bytes_of(name) for name in algorithms
    )


def _trace_mib(plan: Plan) -> int:
    path = plan["path"]
    packets = path["rate_bps"] / 8 / path["mtu_bytes"] * plan["duration_ns"] / 1e9
    calls_bytes = packets * _TRACE_CALLS_PER_PACKET * _native.cc.CALL_RECORD_BYTES
    return int(calls_bytes // 2**20) + _TRACE_RING_MIB * len(plan["flows"])
