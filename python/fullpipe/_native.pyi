"""Types of the compiled module (crates/fullpipe-py)."""

from collections.abc import Callable, Sequence
from typing import Any

from fullpipe.plan.bottleneck import Capacity as PlanCapacity
from fullpipe.plan.facts import Facts as PlanFacts

__version__: str
#: The Linux releases whose TCP the simulator has (`host.tcp`), in ascending order.
KERNELS: tuple[str, ...]
DEFAULT_KERNEL: str
GSO_MAX_SEGMENTS: dict[str, int]

class _Cc:
    CALL_RECORD_BYTES: int
    def algorithms(self) -> list[dict[str, Any]]: ...
    def sets(self) -> list[dict[str, Any]]: ...
    def load(self, path: str, name: str) -> dict[str, Any]: ...
    def replay(self, path: str) -> dict[str, Any]: ...
    def calls(self, path: str, rows: Callable[[dict[str, Any]], None]) -> dict[str, Any]: ...

class Conn:
    now_us: int
    now_ns: int
    edt_ns: int
    delivered_us: int
    last_send_us: int
    pacing_rate_cap_Bps: int  # noqa: N815
    mss_bytes: int
    delivered: int
    delivered_ce: int
    lost: int
    packets_out: int
    inflight: int
    snd_una: int
    snd_nxt: int
    srtt_us: int
    app_limited: int
    cwnd_clamp: int
    gso_max_segs: int
    seed: int
    ca_state: int
    prior_ca_state: int
    is_cwnd_limited: bool
    ecn_ok: bool
    ecn_low: bool
    is_paced: bool
    is_cwnd_full: bool
    min_rtt_us: int
    rttvar_us: int
    unsent_bytes: int
    unsent_packets: int
    acks: int
    rcv_tsval: int
    rcv_tsecr: int
    ts_tick_us: int
    sacked_out: int
    lost_out: int
    retrans_out: int
    max_packets_out: int
    high_seq: int
    reordering: int
    prior_cwnd: int
    lost_age_us: int

class Ack:
    prior_us: int
    prior_delivered: int
    prior_delivered_ce: int
    delivered: int
    delivered_ce: int
    interval_us: int
    rtt_us: int
    losses: int
    acked_sacked: int
    prior_inflight: int
    last_end_seq: int
    tx_inflight: int
    lost: int
    is_app_limited: bool
    is_retrans: bool
    is_ack_delayed: bool
    is_probe_answer: bool
    age_us: int

class Event:
    kind: int
    value: int
    packets: int
    is_app_limited: bool

class Ctl:
    pacing_rate_Bps: int  # noqa: N815
    cwnd: int
    ssthresh: int
    tso_segs: int
    sndbuf_factor: int
    cwnd_cnt: int
    timer_us: int

class Info:
    bw_Bps: int  # noqa: N815
    max_bw_Bps: int  # noqa: N815
    bw_shortterm_Bps: int  # noqa: N815
    min_rtt_us: int
    phase: int
    pacing_gain: int
    cwnd_gain: int
    inflight_longterm: int
    inflight_shortterm: int
    extra_acked: int
    round_count: int

class Stepper:
    def __init__(self, plan_json: str) -> None: ...
    def advance(self, until_ns: int, stops_at_acks: bool) -> int | None: ...
    def look(
        self, agent: int
    ) -> tuple[tuple[int, int, int, int, int, int, int], tuple[int, int, int, int, bool, bool]]: ...
    def queued(self, agent: int) -> tuple[int, int]: ...
    def decide(self, agent: int, cwnd: int, pacing_rate_bytes_per_s: int) -> None: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def is_over(self) -> bool: ...
    def finish(self) -> dict[str, Any]: ...

def advance_all(
    steppers: Sequence[Stepper], until_ns: Sequence[int], stops_at_acks: bool, threads: int
) -> list[int | None]: ...

class _Controller:
    def register(
        self,
        name: str,
        title: str,
        flags: int,
        params: list[dict[str, Any]],
        variables: list[dict[str, str]],
        make: Callable[[list[int], Conn, Ctl], list[Any]],
    ) -> dict[str, Any]: ...

class MeasuredRun:
    def run(self) -> list[float]: ...
    def flows(self) -> list[list[float]]: ...
    def group(self, members: Sequence[int]) -> list[float]: ...
    def silent_flows(self) -> list[int]: ...
    def settling(
        self,
    ) -> tuple[str, float | None, list[tuple[str, float, float, float]]]: ...
    def queues(self) -> list[list[float]]: ...

class Capacity:
    def bits(self, edges_s: bytes) -> bytes: ...
    def drain_s(self, at_s: bytes, volume_bytes: bytes) -> bytes: ...
    def in_full_packets(self, volume_bytes: bytes, packets: bytes) -> bytes: ...

class _Metrics:
    VERSION: int
    TABLES: dict[str, list[tuple[str, str, str]]]
    def jain(self, values: bytes) -> float: ...
    def window(self, facts: PlanFacts, sampled_us: bytes) -> tuple[float, float, float]: ...
    def Run(self, facts: PlanFacts, tables: dict[str, dict[str, Any]]) -> MeasuredRun: ...  # noqa: N802
    def Capacity(self, planned: PlanCapacity) -> Capacity: ...  # noqa: N802

class Measures:
    @property
    def simulator_s(self) -> float: ...
    def simulate(
        self, runs: list[tuple[PlanFacts, bytes]], transports: Sequence[object] = ()
    ) -> list[tuple[int, Exception]]: ...
    def add_recorded(self, tables: dict[str, dict[str, Any]], facts: PlanFacts) -> None: ...
    def take(self) -> dict[str, dict[str, tuple[str, Any]]]: ...

class _Sandbox:
    def confine(
        self,
        *,
        read: Sequence[str] = ...,
        write: Sequence[str] = ...,
        execute: Sequence[str] = ...,
        processes: bool = ...,
        memory_bytes: int | None = ...,
        file_bytes: int | None = ...,
    ) -> list[str]: ...
    def report_faults(self, reports: int) -> None: ...
    def end_with(self, socket: int) -> None: ...
    def end_with_parent(self) -> None: ...

class _Sim:
    def run(
        self,
        plan_json: str,
        progress: Callable[[int], bool] | None = None,
        pcap: int | None = None,
        cc_trace: int | None = None,
        traces: dict[str, Trace] | None = None,
        rows: Callable[[dict[str, Any]], None] | None = None,
        transports: Sequence[object] = (),
    ) -> dict[str, Any]: ...
    def components(self) -> dict[str, str]: ...

class _Differential:
    def draw(self, seed: int, number: int, kernel: str) -> str: ...
    def play(self, script: str, kernel: str) -> str: ...
    def compare(self, kernel: str, model: str) -> dict[str, Any] | None: ...
    def shorter(self, script: str, last: int, parts: int) -> list[str]: ...
    QUEUES: list[str]
    def draw_queue(self, seed: int, number: int, queue: str, kernel: str) -> str: ...
    def play_queue(self, script: str, kernel: str) -> str: ...
    def judge_queue(self, script: str, answer: str, kernel: str) -> dict[str, Any] | None: ...
    def shorter_queue(self, script: str, last: int, parts: int) -> list[str]: ...
    def play_packetdrill(self, program: str, kernel: str) -> str: ...

class _Stream:
    def decode(self, data: bytes) -> dict[str, Any]: ...
    def follow(self, data: bytes, offset: int) -> tuple[int | None, int]: ...
    def captures(self, data: bytes) -> list[bytes]: ...
    def private_states(self, data: bytes) -> list[tuple[int, int, bytes]]: ...

class _Traces:
    def rates(self, path: str) -> tuple[int, int, int]: ...
    def rate_steps(self, path: str, bin_ms: int, end_ns: int) -> list[tuple[int, int]]: ...
    def delays(self, path: str, end_ns: int) -> list[tuple[int, int]]: ...

class _Framing:
    def on_link(self, wire_bytes: int, overhead_json: str) -> int: ...

class _Wifi:
    def saturation(
        self, wifi_json: str, seed: int, from_ns: int, to_ns: int
    ) -> list[dict[str, Any]]: ...

cc: _Cc
controller: _Controller

class Trace:
    def __len__(self) -> int: ...
    def columns(self) -> list[bytes]: ...
    def parts(self) -> tuple[bytes, bytes, bytes, bytes]: ...

class _Traffic:
    def trace(self, starts: bytes, counts: bytes, pauses: bytes, bytes: bytes) -> Trace: ...
    def backbone(self, seed: int, duration_ns: int, rate_bps: int) -> Trace: ...
    def arrivals(
        self, plan_json: str, group: int, trace: Trace | None, most: int
    ) -> list[tuple[int, int, list[tuple[int, int]]]]: ...
    def fluid(self, discipline: str, arrivals: bytes, works: bytes) -> bytes: ...

framing: _Framing
metrics: _Metrics
sandbox: _Sandbox
sim: _Sim
traffic: _Traffic
differential: _Differential
stream: _Stream
traces: _Traces
model: Any
wifi: _Wifi
