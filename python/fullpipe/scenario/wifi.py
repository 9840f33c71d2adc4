"""Wi-Fi channels: `[wifi]` and `[link.wifi]`, and what engines get of them.

A link of `kind = "wifi"` is one channel of 802.11n or 802.11ac with an access point and its
stations; docs/background/wifi.md describes the model. Forward ("up") is from a station to the
access point.
The result of `resolve_wifi` is the JSON of crates/fullpipe-net/src/wifi/params.rs.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fullpipe.base.packets import FULL_FRAME_BYTES
from fullpipe.scenario.fields import Rate, Ratio, Section, Time

MAX_STATIONS = 100

#: Access categories in the order of their priority (802.11 table 10-1).
CATEGORIES = ("BK", "BE", "VI", "VO")
Category = Literal["BK", "BE", "VI", "VO"]


#: In dB.
Snr = Annotated[float, Field(ge=-10, le=60, allow_inf_nan=False)]


class WifiQueue(Section):
    """Where the packets of one node wait for the channel."""

    kind: Literal["mac80211", "driver"] = Field(
        "mac80211",
        description="mac80211: fq_codel for each station with airtime fairness and airtime queue "
        "limits (AQL); driver: a FIFO for each access category",
    )
    packets: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="driver: limit of each FIFO, with packets in the air",
    )
    above: Literal["none", "fifo", "fq_codel"] = Field(
        "none",
        description="driver: queue discipline above the FIFO, used while that is full; none: the "
        "FIFO drops",
    )
    above_packets: int = Field(
        1000, ge=1, le=100_000, description="driver: limit of that discipline, in packets"
    )
    target: Time | None = Field(
        None,
        description="CoDel's acceptable standing delay; default: 20ms with mac80211, 5ms with "
        "fq_codel",
    )
    ecn: bool = Field(True, description="fq_codel marks ECT packets instead of dropping them")
    aql_low: Time = Field(
        5 * 10**6,
        description="mac80211: airtime that a station may always have queued in the hardware",
    )
    aql_high: Time = Field(
        12 * 10**6,
        description="mac80211: the same, while all stations together have less than aql_threshold",
    )
    aql_threshold: Time = Field(
        24 * 10**6, description="mac80211: airtime queued by all stations that separates the two"
    )


class WifiTraffic(Section):
    """Traffic of a station that exists only on the channel."""

    direction: Literal["up", "down"] = Field("up", description="up: from the station, down: to it")
    rate: Rate | None = Field(
        None, description="rate of its IP packets; default: a packet always waits"
    )
    category: Category = Field("BE", description="access category")
    packet: int = Field(1500, ge=28, le=2304, description="size of its IP packets, in bytes")


class WifiStation(Section):
    """One station, or `count` equal ones. Keys left out are those of the channel."""

    name: str | None = Field(
        None,
        min_length=1,
        max_length=60,
        pattern=r"^[A-Za-z0-9._+-]+$",
        description="name for `station` keys; default: station. and a number",
    )
    count: int = Field(1, ge=1, le=MAX_STATIONS, description="number of stations like this")
    mcs: int | Literal["minstrel"] | None = Field(
        None, description="MCS of its frames; default: the channel's"
    )
    snr: Snr | list[tuple[Time, Snr]] | None = Field(
        None, description="SNR in dB, or times and the SNR from each on; default: the channel's"
    )
    error_rate: Ratio | None = Field(
        None, description="probability that an MPDU is lost; default: the channel's"
    )
    queue: WifiQueue | None = Field(None, description="where its packets wait")
    background: list[WifiTraffic] = Field([], max_length=16)


class WifiOptions(Section):
    """A Wi-Fi channel with an access point and its stations."""

    standard: Literal["n", "ac"] = Field("ac", description="802.11n or 802.11ac")
    band: Literal["2.4GHz", "5GHz"] = Field("5GHz", description="frequency band")
    width: Literal[20, 40, 80, 160] = Field(
        20, description="width of the channel in MHz; 802.11n: 20 or 40"
    )
    streams: int | None = Field(
        None, ge=1, le=8, description="spatial streams; default: 1, with 802.11n those of the MCS"
    )
    guard_interval: Literal["400ns", "800ns"] = Field(
        "800ns", description="guard interval of data symbols"
    )
    mcs: int | Literal["minstrel"] = Field(
        "minstrel",
        description="MCS of data frames, 0 to 31 with 802.11n, 0 to 9 with 802.11ac; minstrel: "
        "chosen by past success",
    )
    snr: Snr | list[tuple[Time, Snr]] | None = Field(
        None, description="SNR in dB, or times and the SNR from each on; default: no noise"
    )
    error_rate: Ratio = Field(
        0.0, description="probability that an MPDU is lost, beside losses to noise"
    )
    queue: WifiQueue = Field(
        default_factory=WifiQueue, description="where the stations' packets wait"
    )
    ap_queue: WifiQueue | None = Field(
        None, description="where the access point's packets wait; default: as the stations'"
    )
    station: list[WifiStation] = Field(
        [], max_length=MAX_STATIONS, description="the stations; default: one, called station"
    )
    ampdu: dict[Category, Annotated[int, Field(ge=0, le=1048575)]] = Field(
        {},
        description="largest A-MPDU in bytes by access category, 0 for no aggregation; default: "
        "65535 with 802.11n, 1048575 with 802.11ac",
    )
    txop: dict[Category, Time] = Field(
        {}, description="TXOP limits by access category; default: VI 3008us, VO 1504us, others 0"
    )
    retry_limit: int = Field(7, ge=1, le=255, description="most attempts for a single frame")
    block_ack_retry_limit: int | None = Field(
        10, ge=0, le=255, description="how often an MPDU may be missing from a BlockAck"
    )
    rts_above: int | None = Field(
        None, ge=0, description="size in bytes above which frames start with RTS; default: no RTS"
    )
    beacon_interval: Time = Field(
        102_400_000, description="interval between beacons; 0: no beacons"
    )
    rules: Literal["standard", "ns3"] = Field(
        "standard",
        description="ns3: as ns-3 3.44 departs from the standard, for comparisons with it "
        "(docs/background/wifi.md)",
    )
    block_ack_request: bool | None = Field(
        None,
        description="a sender requests the BlockAck after a collision of A-MPDUs; default: false, "
        "with the rules of ns3 true",
    )
    eifs: bool | None = Field(
        None,
        description="stations wait for EIFS after a collision; default: true, with the rules of "
        "ns3 false",
    )

    @model_validator(mode="after")
    def _consistent(self) -> WifiOptions:
        if self.standard == "n" and self.width > 40:
            raise ValueError(f"width: 802.11n has 20 and 40 MHz, not {self.width}")
        if self.standard == "ac" and self.band == "2.4GHz":
            raise ValueError("band: 802.11ac has only 5GHz")
        if self.standard == "n" and (self.streams or 1) > 4:
            raise ValueError("streams: 802.11n has 1 to 4")
        streams = {self.streams} if self.streams else set()
        for index, mcs in enumerate([self.mcs, *(station.mcs for station in self.station)]):
            key = "mcs" if index == 0 else f"station.{index - 1}.mcs"
            if mcs is None or mcs == "minstrel":
                continue
            most = 31 if self.standard == "n" else 9
            if not 0 <= mcs <= most:
                raise ValueError(f"{key}: 802.11{self.standard} has 0 to {most}")
            if self.standard == "n":
                streams = streams or {mcs // 8 + 1}
                first = 8 * min(streams) - 8
                if not first <= mcs < first + 8:
                    raise ValueError(
                        f"{key}: with {min(streams)} streams, one number for all stations, "
                        f"802.11n has {first} to {first + 7}"
                    )
            elif not vht_mode_exists(self.width, self.streams or 1, mcs):
                exist = [n for n in range(10) if vht_mode_exists(self.width, self.streams or 1, n)]
                raise ValueError(
                    f"{key}: does not exist at {self.width} MHz with {self.streams or 1} streams; "
                    f"those that do are {', '.join(map(str, exist))} (802.11-2020, 21.5)"
                )
        if sum(station.count for station in self.station) > MAX_STATIONS:
            raise ValueError(f"station: at most {MAX_STATIONS} in all")
        names = [name for name in station_names(self)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"station: the name {name!r} is used twice; names must differ")
        for snr in [self.snr, *(station.snr for station in self.station)]:
            if isinstance(snr, list):
                times = [time for time, _ in snr]
                if not times or times[0] != 0 or sorted(set(times)) != times:
                    raise ValueError("snr: times must begin with 0 and rise")
        return self


def vht_mode_exists(width_mhz: int, streams: int, mcs: int) -> bool:
    """Whether 802.11ac has this MCS: bits of a symbol must divide evenly among the encoders
    (802.11-2020, 21.5)."""
    bits, numerator, denominator = (
        (1, 1, 2),
        (2, 1, 2),
        (2, 3, 4),
        (4, 1, 2),
        (4, 3, 4),
        (6, 2, 3),
        (6, 3, 4),
        (6, 5, 6),
        (8, 3, 4),
        (8, 5, 6),
    )[mcs]
    coded = {20: 52, 40: 108, 80: 234, 160: 468}[width_mhz] * bits * streams
    data = coded * numerator // denominator
    encoders = max(1, -(-data * 250_000 // 540_000_000))
    return (
        coded * numerator % denominator == 0
        and data % encoders == 0
        and coded // encoders % denominator == 0
    )


def station_names(options: WifiOptions) -> list[str]:
    """Names of all stations, in the order of the channel."""
    names: list[str] = []
    for index, station in enumerate(options.station or [WifiStation(name="station")]):
        name = station.name or f"station.{index + 1}"
        if station.count == 1:
            names.append(name)
        else:
            names += [f"{name}.{position + 1}" for position in range(station.count)]
    return names


def resolve_wifi(options: WifiOptions) -> dict[str, Any]:
    """The channel as engines get it."""
    largest = 65535 if options.standard == "n" else 1048575
    txop_ns = {"VI": 3_008_000, "VO": 1_504_000} | dict(options.txop)
    edca = {"BK": (7, 15, 1023), "BE": (3, 15, 1023), "VI": (2, 7, 15), "VO": (2, 3, 7)}
    ns3 = options.rules == "ns3"
    if ns3:
        txop_ns = {"VI": 4_096_000, "VO": 2_080_000} | dict(options.txop)
    by_mcs = options.mcs // 8 + 1 if options.standard == "n" and options.mcs != "minstrel" else 1
    names = iter(station_names(options))
    stations = [
        _station(options, station, next(names))
        for station in options.station or [WifiStation()]
        for _ in range(station.count)
    ]
    return {
        "standard": options.standard,
        "band": options.band,
        "width_mhz": options.width,
        "streams": options.streams or by_mcs,
        "short_guard_interval": options.guard_interval == "400ns",
        "stations": stations,
        "queues": _queue(options.ap_queue or options.queue, options.standard),
        "access": [
            {
                "aifsn": edca[category][0],
                "cw_min": edca[category][1],
                "cw_max": edca[category][2],
                "txop_ns": txop_ns.get(category, 0),
                "max_ampdu_bytes": options.ampdu.get(category, largest),  # type: ignore[call-overload]
            }
            for category in CATEGORIES
        ],
        "retry_limit": options.retry_limit,
        "block_ack_retry_limit": options.block_ack_retry_limit,
        "rts_threshold_bytes": options.rts_above,
        "beacon_interval_ns": options.beacon_interval,
        "rules": {
            "explicit_block_ack_request": _first(options.block_ack_request, ns3),
            "reserve_whole_txop": ns3,
            "vht_sig_b": not ns3,
            "round_short_guard_interval": not ns3,
            "eifs": _first(options.eifs, not ns3),
            **({"pass_on_each_mpdu": True} if ns3 else {}),
        },
    }


def _station(options: WifiOptions, station: WifiStation, name: str) -> dict[str, Any]:
    mcs = options.mcs if station.mcs is None else station.mcs
    snr = options.snr if station.snr is None else station.snr
    if snr is None:
        trace: list[tuple[int, float]] = []
    elif isinstance(snr, list):
        trace = list(snr)
    else:
        trace = [(0, snr)]
    error_rate = options.error_rate if station.error_rate is None else station.error_rate
    rate: dict[str, Any] = {"kind": "minstrel"}
    if mcs != "minstrel":
        rate = {"kind": "fixed", "mcs": mcs % 8 if options.standard == "n" else mcs}
    return {
        "name": name,
        "rate": rate,
        "snr_mdb": [(time, round(value * 1000)) for time, value in trace],
        "error_ppm": round(error_rate * 1e6),
        "queues": _queue(station.queue or options.queue, options.standard),
        "background": [
            {
                "up": traffic.direction == "up",
                "category": CATEGORIES.index(traffic.category),
                "rate_bps": traffic.rate,
                "packet_bytes": traffic.packet,
            }
            for traffic in station.background
        ],
    }


def _queue(queue: WifiQueue, standard: str) -> dict[str, Any]:
    if queue.kind == "mac80211":
        # ieee80211_txq_setup_flows(): 4096 flows of all stations, 4 MiB where there is no VHT.
        memory = (4 if standard == "n" else 16) * 2**20
        return {
            "kind": "mac80211",
            "qdisc": _fq_codel(queue, 20_000_000, 8192, 300, 1024, memory),
            "aql_low_ns": queue.aql_low,
            "aql_high_ns": queue.aql_high,
            "aql_threshold_ns": queue.aql_threshold,
            "airtime_quantum_ns": 256_000,
        }
    above: dict[str, Any] | None = None
    if queue.above == "fifo":
        above = {
            "limit_bytes": None,
            "limit_packets": queue.above_packets,
            "aqm": {"kind": "fifo"},
        }
    elif queue.above == "fq_codel":
        above = _fq_codel(queue, 5_000_000, queue.above_packets, FULL_FRAME_BYTES, 1024, 32 * 2**20)
    return {"kind": "driver", "limit_packets": queue.packets, "qdisc": above}


def _fq_codel(
    queue: WifiQueue, target_ns: int, packets: int, quantum: int, flows: int, memory: int
) -> dict[str, Any]:
    return {
        "limit_bytes": None,
        "limit_packets": packets,
        "aqm": {
            "kind": "fq_codel",
            "target_ns": target_ns if queue.target is None else queue.target,
            "interval_ns": 100_000_000,
            "quantum_bytes": quantum,
            "flows": flows,
            "memory_limit_bytes": memory,
            "ecn": queue.ecn,
        },
    }


def _first(chosen: bool | None, default: bool) -> bool:
    return default if chosen is None else chosen
