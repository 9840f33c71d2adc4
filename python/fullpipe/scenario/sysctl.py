"""`[host.sysctl]`: settings of the hosts' TCP by the kernel's own names."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fullpipe.scenario.fields import Section

_OnOff = Annotated[int | None, Field(ge=0, le=1)]


class Sysctl(Section):
    """Settings of the hosts' TCP, `net.ipv4.NAME`, as whole numbers; the default of each is that
    of Linux."""

    tcp_slow_start_after_idle: _OnOff = Field(
        None, description="0: the window stays after an idle time (not RFC 2861)"
    )
    tcp_notsent_lowat: int | None = Field(
        None, ge=1, le=2**31 - 1, description="bytes that the socket takes beyond what is sent"
    )
    tcp_min_tso_segs: int | None = Field(
        None,
        ge=1,
        le=255,
        description="least packets of a burst (Linux: 2), of algorithms that leave it to TCP",
    )
    tcp_tso_rtt_log: int | None = Field(
        None, ge=0, le=31, description="bursts may be larger below 2^this us of RTT (Linux: 9)"
    )
    tcp_pacing_ss_ratio: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="pacing rate of slow start, in percent of a window in an RTT (Linux: 200), of "
        "algorithms that set none",
    )
    tcp_pacing_ca_ratio: int | None = Field(
        None, ge=1, le=1000, description="the same after slow start (Linux: 120)"
    )
    tcp_timestamps: int | None = Field(None, ge=0, le=2, description="0: no timestamps")
    tcp_sack: _OnOff = Field(None, description="0: no selective acknowledgements")
    tcp_dsack: _OnOff = Field(None, description="0: receivers report no duplicates")
    tcp_recovery: int | None = Field(None, ge=0, le=7, description="bits of RACK")
    tcp_early_retrans: int | None = Field(
        None, ge=0, le=4, description="0: no tail loss probes; 3: probes"
    )
    tcp_reordering: int | None = Field(None, ge=1, le=300, description="first reordering degree")
    tcp_max_reordering: int | None = Field(None, ge=1, le=10_000, description="largest one")
    tcp_frto: int | None = Field(None, ge=0, le=2, description="0: no F-RTO")
    tcp_limit_output_bytes: int | None = Field(
        None, ge=1, le=2**31 - 1, description="bytes of a flow below TCP"
    )
    tcp_tso_win_divisor: int | None = Field(
        None, ge=0, le=255, description="part of a window that a burst may take (Linux: 3)"
    )
    tcp_autocorking: _OnOff = Field(None, description="0: short writes are not gathered")
    tcp_moderate_rcvbuf: _OnOff = Field(None, description="0: receive buffers do not grow")
    tcp_window_scaling: _OnOff = Field(None, description="0: windows up to 64 KiB")
    tcp_comp_sack_nr: int | None = Field(
        None, ge=0, le=255, description="ACKs held back at a hole (Linux: 44)"
    )
    tcp_comp_sack_delay_ns: int | None = Field(
        None, ge=0, le=10**9, description="and for how long (Linux: 1000000)"
    )
