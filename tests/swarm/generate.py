"""Random scenarios over all that the simulator has: one seed is one scenario.

A scenario is a document as a user writes it, and the files that it names. Sizes are chosen so that
a run has some thousand packets. Must never know what a run does with a scenario, nor its checks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fullpipe._native import KERNELS
from fullpipe.congestion.registry import cc_sets

Keys = dict[str, Any]

#: Full packets that the slowest link carries in a run, at most.
_PACKETS = 12_000
_MAX_DURATION_S = 12.0
_DSCPS = ("CS0", "CS1", "AF41", "EF", "CS6", "LE", 3, 63)


@dataclass
class Case:
    """One scenario: its document, and the files that it names, by their names."""

    seed: int
    document: Keys
    files: dict[str, str] = field(default_factory=dict)


def generate(seed: int) -> Case:
    """The scenario of a seed. Some contradict themselves and are refused."""
    return _Maker(seed).case()


class _Maker:
    """The choices of one scenario."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(seed)
        self.files: dict[str, str] = {}
        self.bps = self.log_uniform(200e3, 1e9)
        packets = self.log_uniform(100, _PACKETS)
        self.duration_s = min(_MAX_DURATION_S, max(0.3, packets * 12_000 / self.bps))
        self.rtt_s = self.log_uniform(20e-6, min(0.4, self.duration_s / 4))
        self.mtu = self.draw.choice((1500,) * 6 + (576, 1280, 9000))
        self.link_names: list[str] = []
        self.stations: list[str] = []

    # Draws.

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def log_uniform(self, low: float, high: float) -> float:
        return math.exp(self.draw.uniform(math.log(low), math.log(high)))

    def time(self, low_s: float, high_s: float) -> str:
        """A time, from one range of magnitudes, in whole ns."""
        return f"{max(1, round(self.log_uniform(low_s, high_s) * 1e9))}ns"

    def rate(self, low: float, high: float) -> str:
        """A rate as a multiple of the bottleneck's."""
        return f"{max(8_000, round(self.bps * self.log_uniform(low, high)))}bit"

    def ratio(self, most: float = 0.1) -> float:
        return round(self.log_uniform(1e-4, most), 6)

    def some(self, keys: dict[str, Any], chance: float = 0.3) -> Keys:
        """A part of these keys, whose values are made only if they are taken."""
        return {key: make() for key, make in keys.items() if self.chance(chance)}

    def pick(self, *values: Any) -> Any:
        return self.draw.choice(values)

    # The network.

    def case(self) -> Case:
        document: Keys = {
            "name": f"swarm {self.seed}",
            "seed": self.draw.randrange(2**32),
            "duration": f"{round(self.duration_s * 1e9)}ns",
            "sample_interval": self.pick("1ms", "2ms", "5ms", "10ms", "10ms", "100ms"),
            **self.some({
                "warmup": lambda: f"{round(self.duration_s * 0.2e9)}ns",
                "start_spread": lambda: self.time(1e-6, 0.05 * self.duration_s),
                "rtt_spread": lambda: self.pick("1pkt", "3pkt", "2ms"),
            }, 0.15),
        }  # fmt: skip
        if self.chance(0.45):
            document["path"] = self.path()
            if self.chance(0.15):
                document["wifi"] = self.wifi()
        else:
            document["link"] = self.row()
            document["path"] = {"mtu": self.mtu, **self.some({"ecn": self.ecn}, 0.4)}
        document |= self.workload()
        if self.chance(0.5):
            document["host"] = self.host()
        return Case(self.seed, document, self.files)

    def path(self) -> Keys:
        keys = {"rate": f"{round(self.bps)}bit", "rtt": f"{round(self.rtt_s * 1e9)}ns"}
        forward_ns = self.draw.randrange(round(self.rtt_s * 1e9) + 1)
        return keys | {"mtu": self.mtu} | self.queue() | {
            **self.some({
                "forward_delay": lambda: f"{forward_ns}ns",
                "reverse_rate": lambda: self.rate(0.02, 10),
                "loss": self.ratio,
                "loss_per": lambda: self.pick("packet", "burst"),
                "loss_marks": lambda: self.chance(0.5),
                "reverse_loss": self.ratio,
                "jitter": lambda: self.time(1e-6, self.rtt_s),
                "jitter_shape": lambda: self.pick("per_packet", "slotted"),
                "ecn": self.ecn,
            }),
            **{f"reverse_{key}": value for key, value in self.queue().items()},
        }  # fmt: skip

    def ecn(self) -> Any:
        return self.pick(True, "classic", "accecn", "l4s", False)

    def queue(self) -> Keys:
        """Keys of a queue, its discipline with options."""
        keys = self.some({"buffer": self.buffer}, 0.7)
        if self.chance(0.35):
            return keys
        name = self.pick(*self._qdiscs)
        keys["qdisc"] = name
        options = self._qdiscs[name](self)
        if options and self.chance(0.7):
            keys["qdisc_options"] = options
        return keys

    def buffer(self) -> str:
        return str(self.pick(
            f"{self.pick(0.05, 0.3, 1, 2, 8)}bdp",
            f"{self.pick(1, 2, 3, 10, 50, 400)}pkt",
            f"{self.draw.randrange(100, 2**18)}B",
        ))  # fmt: skip

    _qdiscs: ClassVar[dict[str, Callable[[_Maker], Keys]]] = {
        "fq": lambda self: self.some({
            "quantum": lambda: f"{self.pick(1, 300, 3028, 60000)}B",
            "flow_limit": lambda: self.pick(1, 5, 100),
        }, 0.5),
        "codel": lambda self: self.codel(),
        "fq_codel": lambda self: self.codel() | self.some({
            "quantum": lambda: f"{self.pick(1, 300, 1514, 60000)}B",
            "flows": lambda: self.pick(1, 2, 16, 1024),
            "memory_limit": lambda: self.pick("1KB", "30KB", "4MB"),
        }),
        "red": lambda self: self.some({
            "min": lambda: f"{self.pick(1000, 5000, 20000)}B",
            "max": lambda: f"{self.pick(21000, 60000, 200000)}B",
            "max_probability": lambda: self.pick(0.001, 0.02, 0.5, 1.0),
        }, 0.5),
        "cake": lambda self: self.cake(),
        "pie": lambda self: self.pie(),
        "fq_pie": lambda self: self.pie() | self.some({
            "quantum": lambda: f"{self.pick(1, 300, 1514, 60000)}B",
            "flows": lambda: self.pick(1, 2, 16, 1024),
            "ecn_up_to": lambda: self.pick(0.0, 0.1, 1.0),
        }),
        "sfq": lambda self: self.some({
            "quantum": lambda: f"{self.pick(1, 300, 1514, 60000)}B",
            "flows": lambda: self.pick(1, 2, 128),
            "flow_limit": lambda: self.pick(1, 5, 127),
            "buckets": lambda: self.pick(1, 16, 1024),
            "head_drop": lambda: self.chance(0.5),
        }),
        "tbf": lambda self: self.some({
            "burst": lambda: f"{self.pick(2, 3, 10, 50) * (self.mtu + 14)}B",
        }, 0.5),
        "prio": lambda self: self.prio(),
        "dualpi2": lambda self: self.some({
            "target": lambda: self.time(1e-3, 0.1),
            "update": lambda: self.time(1e-3, 0.1),
            "alpha": lambda: self.pick(0.0, 0.16, 2.0),
            "beta": lambda: self.pick(0.0, 3.2, 20.0),
            "step": lambda: self.time(1e-6, 0.02),
            "coupling": lambda: self.pick(1, 2, 8),
            "classic_share": lambda: self.pick(0.0, 0.1, 0.5, 1.0),
            "drop_on_overload": lambda: self.chance(0.5),
        }),
    }  # fmt: skip

    def codel(self) -> Keys:
        return self.some({
            "target": lambda: self.time(1e-5, 0.05),
            "interval": lambda: self.time(1e-3, 0.5),
        }, 0.5)  # fmt: skip

    def pie(self) -> Keys:
        return self.some({
            "target": lambda: self.time(1e-4, 0.1),
            "update": lambda: self.time(1e-3, 0.1),
            "alpha": lambda: self.pick(0.0, 0.125, 2.0),
            "beta": lambda: self.pick(0.0, 1.25, 20.0),
            "byte_mode": lambda: self.chance(0.5),
            "departure_rate": lambda: self.chance(0.5),
        })  # fmt: skip

    def cake(self) -> Keys:
        bandwidth = self.pick("path", "path", "unlimited")
        autorate = {"autorate_ingress": True} if bandwidth == "path" and self.chance(0.1) else {}
        return {"bandwidth": bandwidth, **autorate} | self.some({
            "rtt": lambda: self.time(1e-4, 1),
            "target": lambda: self.time(1e-5, 0.05),
            "tins": lambda: self.pick(
                "besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"),
            "isolation": lambda: self.pick(
                "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost",
                "dual-dsthost", "triple-isolate"),
            "ack_filter": lambda: self.pick("no", "filter", "aggressive"),
            "overhead": lambda: self.pick(-20, 0, 18, 44, 256),
            "mpu": lambda: self.pick(0, 64, 256),
            "framing": lambda: self.pick("none", "atm", "ptm"),
            "ingress": lambda: self.chance(0.5),
            "wash": lambda: self.chance(0.5),
            "split_gso": lambda: self.chance(0.5),
        })  # fmt: skip

    def prio(self) -> Keys:
        bands = self.pick(1, 2, 3, 16)
        names = self.draw.sample(("EF", "CS1", "CS6", "LE", "3"), self.draw.randrange(4))
        return {
            "bands": bands,
            "default_band": self.draw.randrange(bands),
            "dscp": {name: self.draw.randrange(bands) for name in names},
        }

    def row(self) -> list[Keys]:
        """Links, at least one of which has a rate."""
        links = []
        for index in range(self.pick(1, 1, 2, 2, 3, 5)):
            name = f"link{index}"
            self.link_names.append(name)
            if self.chance(0.12) and not self.stations:
                links.append(self.channel(name))
                continue
            one = {"name": name, **self.direction()}
            if self.chance(0.7):
                one["reverse"] = self.direction()
            links.append(one)
        if not any("rate" in link or "rate_trace" in link for link in links):
            self.link_names.append("last")
            links.append({"name": "last", "rate": f"{round(self.bps)}bit", **self.queue()})
        return links

    def direction(self) -> Keys:
        """One direction of a wire."""
        keys: Keys = {}
        if self.chance(0.85):
            keys = {"rate": self.rate(0.5, 5), **self.queue()}
            options = keys.get("qdisc_options", {})
            keeps_rate = keys.get("qdisc") == "tbf" or (
                keys.get("qdisc") == "cake" and options.get("bandwidth", "path") == "path"
            )
            if not keeps_rate:
                self.change_rate(keys)
        if self.chance(0.1):
            keys["delay_trace"] = self.delay_trace()
        elif self.chance(0.9):
            keys["delay"] = f"{round(self.rtt_s / 4 * self.log_uniform(0.1, 2) * 1e9)}ns"
            if self.chance(0.15):
                times = self.times(self.draw.randint(1, 4))
                keys["delay_steps"] = [[at, self.time(1e-6, self.rtt_s)] for at in times]
        if self.chance(0.5):
            keys |= self.impairments(keys)
        return keys

    def change_rate(self, keys: Keys) -> None:
        """Makes a rate change, in some directions."""
        kind = self.draw.random()
        if kind < 0.15:
            times = self.times(self.draw.randint(1, 5))
            keys["rate_steps"] = [[at, self.rate(0.1, 3)] for at in times]
        elif kind < 0.25:
            del keys["rate"]
            keys["rate_trace"] = self.rate_trace()
        if (kind < 0.2 or kind > 0.92) and "rate" in keys:
            start, end = self.times(2)
            length = int(end[:-2]) - int(start[:-2])
            keys["outage"] = [[start, f"{max(1, length // self.pick(1, 4))}ns"]]

    def times(self, count: int) -> list[str]:
        """Times within the run, in order."""
        end = round(self.duration_s * 1e9)
        return [f"{at}ns" for at in sorted(self.draw.sample(range(1, end), count))]

    def rate_trace(self) -> str:
        """A file of delivery opportunities."""
        name = f"rate{len(self.files)}.trace"
        length_ms = self.pick(10, 100, 1000)
        opportunities = max(1, min(20_000, round(self.bps / 12_000 * length_ms / 1000)))
        times = sorted(self.draw.randrange(length_ms) for _ in range(opportunities))
        self.files[name] = "".join(f"{at}\n" for at in [*times, length_ms])
        return name

    def delay_trace(self) -> str:
        """A file of times and delays in ms."""
        name = f"delay{len(self.files)}.trace"
        at_ms, lines = 0, []
        for _ in range(self.draw.randint(2, 20)):
            lines.append(f"{at_ms} {self.log_uniform(0.001, self.rtt_s * 500):.3f}\n")
            at_ms += self.draw.randint(1, 300)
        self.files[name] = "".join(lines)
        return name

    def impairments(self, keys: Keys) -> Keys:
        """Damage of a direction, of which `keys` holds the rest."""
        bursty = self.chance(0.2)
        found = self.some({
            "duplicate": self.ratio,
            "policer": lambda: {
                "rate": self.rate(0.3, 3), "burst": f"{self.pick(1, 3, 30) * (self.mtu + 14)}B"},
            "hold": lambda: {"time": self.time(1e-5, 0.03), **self.some({
                "packets": lambda: self.pick(1, 2, 16)}, 0.5)},
            "wifi_jitter": lambda: self.pick("1ms", "3ms", "20ms"),
            "reorder": self.ratio,
            "loss": self.ratio,
        }, 0.2)  # fmt: skip
        if bursty:
            found.pop("loss", None)
            found["gemodel"] = {"p": self.ratio(0.05), "r": self.pick(0.05, 0.3, 1.0)} | self.some({
                "loss_bad": lambda: self.pick(0.2, 0.8, 1.0),
                "loss_good": lambda: self.pick(0.0, 0.01),
            })  # fmt: skip
        if "reorder" in found:
            if "delay" not in keys:
                del found["reorder"]
            else:
                found |= self.some({
                    "reorder_gap": lambda: self.pick(1, 3, 50),
                    "reorder_correlation": lambda: self.pick(0.1, 0.5),
                })  # fmt: skip
        if "loss" in found:
            found |= self.some({
                "loss_correlation": lambda: self.pick(0.1, 0.9),
                "loss_marks": lambda: True,
            })  # fmt: skip
        if "duplicate" in found:
            found |= self.some({"duplicate_correlation": lambda: self.pick(0.1, 0.9)})
        return found

    # Wi-Fi.

    def channel(self, name: str) -> Keys:
        """A link that is a channel, perhaps behind a shaper."""
        link: Keys = {"name": name, "kind": "wifi", "wifi": self.wifi()}
        if self.chance(0.4):
            link |= {"rate": self.rate(0.3, 2), **self.queue()}
        if self.chance(0.3):
            link["reverse"] = {"rate": self.rate(0.3, 2), **self.queue()}
        return link

    def wifi(self) -> Keys:
        standard = self.pick("n", "ac")
        keys: Keys = {
            "standard": standard,
            "width": self.pick(20, 40) if standard == "n" else self.pick(20, 40, 80, 160),
            "mcs": self.pick("minstrel", self.draw.randrange(8)),
        }
        keys |= self.some({
            "band": lambda: self.pick("2.4GHz", "5GHz") if standard == "n" else "5GHz",
            "guard_interval": lambda: self.pick("400ns", "800ns"),
            "snr": lambda: self.pick(8, 20, 40, [["0s", 30], [self.times(1)[0], 10]]),
            "error_rate": lambda: self.ratio(0.3),
            "queue": self.wifi_queue,
            "ap_queue": self.wifi_queue,
            "retry_limit": lambda: self.pick(1, 7),
            "block_ack_retry_limit": lambda: self.pick(0, 3, 10),
            "rts_above": lambda: self.pick(0, 2000),
            "beacon_interval": lambda: self.pick("0s", "10ms", "102400us"),
            "rules": lambda: self.pick("standard", "ns3"),
            "block_ack_request": lambda: self.chance(0.5),
            "eifs": lambda: self.chance(0.5),
            "ampdu": lambda: {"BE": self.pick(0, 5000, 65535), "VO": 0},
            "txop": lambda: {"BE": self.pick("0ms", "2ms")},
        }, 0.25)  # fmt: skip
        for index in range(self.pick(1, 2, 3)):
            name = f"sta{index}"
            self.stations.append(name)
            station: Keys = {"name": name} | self.some({
                "error_rate": lambda: self.ratio(0.3),
                "queue": self.wifi_queue,
                "background": lambda: [self.background()],
            }, 0.2)  # fmt: skip
            keys.setdefault("station", []).append(station)
        return keys

    def background(self) -> Keys:
        return self.some({
            "direction": lambda: self.pick("up", "down"),
            "rate": lambda: self.pick("100kbit", "5mbit"),
            "category": lambda: self.pick("BK", "BE", "VI", "VO"),
            "packet": lambda: self.pick(28, 700, 2304),
        }, 0.6)  # fmt: skip

    def wifi_queue(self) -> Keys:
        if self.chance(0.5):
            return {"kind": "mac80211"} | self.some({
                "target": lambda: self.time(1e-3, 0.1),
                "ecn": lambda: self.chance(0.5),
                "aql_low": lambda: self.time(1e-4, 0.02),
                "aql_high": lambda: self.time(1e-4, 0.05),
                "aql_threshold": lambda: self.time(1e-3, 0.1),
            })  # fmt: skip
        return {"kind": "driver", "packets": self.pick(1, 2, 30, 1000)} | self.some({
            "above": lambda: self.pick("none", "fifo", "fq_codel"),
            "above_packets": lambda: self.pick(1, 20, 1000),
        })  # fmt: skip

    # What sends.

    def workload(self) -> Keys:
        found: Keys = {}
        kinds = self.draw.random()
        if kinds < 0.88:
            found["flow"] = [self.flow() for _ in range(self.pick(1, 1, 2, 2, 3, 5))]
        if kinds > 0.7:
            more = self.draw.sample(("page", "udp", "traffic"), self.pick(1, 1, 2))
            if "flow" not in found and not more:
                more = ["udp"]
            for kind in more:
                makers = {"page": self.page, "udp": self.udp, "traffic": self.traffic}
                found[kind] = [makers[kind]() for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.4):
            found.setdefault("udp", []).append(self.udp())
        if self.chance(0.6):
            found["probe"] = [self.probe() for _ in range(self.pick(1, 2))]
        if self.link_names and "enter" in str(found):
            # Something passes every link.
            found.setdefault("probe", []).append({"interval": "100ms"})
        return found

    def common(self) -> Keys:
        """Keys of everything that sends."""
        keys: Keys = self.some({
            "start": lambda: self.time(1e-6, self.duration_s / 2),
            "dscp": lambda: self.pick(*_DSCPS),
        })  # fmt: skip
        if self.stations and self.chance(0.7):
            keys["station"] = self.pick(*self.stations)
        if self.link_names and self.chance(0.25):
            first = self.draw.randrange(len(self.link_names))
            last = self.draw.randrange(first, len(self.link_names))
            keys |= {"enter": self.link_names[first], "leave": self.link_names[last]}
        return keys

    def stop(self) -> str:
        return self.time(self.duration_s / 2, self.duration_s)

    def volume(self) -> str:
        """A volume that the bottleneck carries in up to the run's duration."""
        most = max(2.0, self.bps / 8 * self.duration_s)
        return f"{round(self.log_uniform(1, most))}B"

    def cc(self) -> str:
        """A congestion control, perhaps with changed constants."""
        one = self.pick(*cc_sets().values())
        if self.chance(0.6):
            return str(one.name)
        changed = []
        for param in self.draw.sample(one.params, self.draw.randint(1, min(3, len(one.params)))):
            value = self.pick(
                param.min, param.max, param.default, self.draw.randint(param.min, param.max)
            )
            changed.append(f"{param.name}={value / param.scale!r}")
        return f"{one.name}[{','.join(changed)}]"

    def flow(self) -> Keys:
        keys: Keys = {"cc": self.cc(), **self.common()}
        keys |= self.some({
            "direction": lambda: self.pick("up", "down", "down"),
            "count": lambda: self.pick(2, 3, 8),
            "start_step": lambda: self.time(1e-6, self.duration_s / 30),
            "host": lambda: self.draw.randrange(4),
            "far_host": lambda: self.draw.randrange(4),
            "jitter": lambda: self.time(1e-6, self.rtt_s),
            "jitter_shape": lambda: self.pick("per_packet", "slotted"),
            "receive_window": lambda: f"{self.pick(2, 4, 30, 900) * self.mtu}B",
            "ecn": self.ecn,
            "stop": self.stop,
        }, 0.2)  # fmt: skip
        if self.chance(0.2) and not self.link_names:
            keys["rtt"] = f"{round(self.rtt_s * self.pick(1, 1.5, 3) * 1e9)}ns"
        application = self.draw.random()
        if application < 0.4:
            keys["amount"] = self.volume()
        if 0.3 < application < 0.5:
            keys["app_rate"] = self.rate(0.05, 1.5)
        elif 0.5 < application < 0.6:
            keys["pattern"] = {
                "on": self.time(1e-3, self.duration_s), "off": self.time(1e-3, self.duration_s),
                "random": self.chance(0.5)}  # fmt: skip
        elif 0.6 < application < 0.7:
            every = max(1e-3, self.duration_s / self.pick(3, 20, 100))
            keys["pattern"] = {"write": self.volume(), "every": f"{round(every * 1e9)}ns"}
        return keys

    def page(self) -> Keys:
        size = lambda: f"{round(self.log_uniform(100, self.bps / 8 * self.duration_s / 5 + 200))}B"  # noqa: E731
        levels = [[size() for _ in range(self.pick(1, 2, 6))] for _ in range(self.pick(1, 2, 3))]
        return {"cc": self.cc(), "levels": levels, **self.common()} | self.some({
            "protocol": lambda: self.pick("http1", "http2"),
            "connections": lambda: self.pick(1, 2, 6),
            "lookup": lambda: self.pick("none", "once", "each"),
            "request": lambda: self.pick("40B", "400B", "5000B"),
            "think": lambda: self.time(1e-4, 0.02),
            "interval": lambda: self.time(0.02, 1),
            "pause": lambda: self.time(1e-3, 0.1),
            "loads": lambda: self.pick(1, 3, 10),
            "keep_connections": lambda: self.chance(0.5),
            "nodelay": lambda: self.chance(0.5),
            "ecn": lambda: self.chance(0.5),
            "stop": self.stop,
        }, 0.4)  # fmt: skip

    def udp(self) -> Keys:
        keys: Keys = {"rate": self.rate(0.01, 1.3), **self.common()} | self.some({
            "direction": lambda: self.pick("up", "down"),
            "payload": lambda: f"{self.pick(16, 160, min(1200, self.mtu - 28))}B",
            "host": lambda: self.draw.randrange(4),
            "stop": self.stop,
        })  # fmt: skip
        keys.setdefault("payload", f"{self.mtu - 28 - self.draw.randrange(200)}B")
        if keys["payload"] == "16B":
            keys["rate"] = self.rate(1e-4, 1e-2)
        kind = self.draw.random()
        if kind < 0.2:
            keys |= {"on": self.time(2e-3, 1), "off": self.time(2e-3, 1), "random": kind < 0.1}
        elif kind < 0.35:
            keys |= {"frames": self.pick(10, 30, 59.94), "deadline": self.time(1e-3, 0.2)}
        return keys

    def traffic(self) -> Keys:
        keys: Keys = {"cc": self.cc(), **self.common()} | self.some({
            "direction": lambda: self.pick("up", "down"),
            "senders": lambda: self.pick(2, 5),
            "stop": self.stop,
            "ecn": lambda: self.chance(0.5),
            "samples": lambda: [0, 3],
            "arrivals": lambda: self.pick("poisson", "lognormal"),
        })  # fmt: skip
        if self.chance(0.3) and not self.link_names:
            senders = range(keys.get("senders", 1))
            keys["rtts"] = [self.time(self.rtt_s / 2, self.rtt_s * 2) for _ in senders]
        if self.chance(0.2):
            name = f"flows{len(self.files)}.csv"
            lines = ["flow,start_us,pause_us,bytes\n"]
            for flow in range(self.draw.randint(1, 30)):
                start = self.draw.randrange(round(self.duration_s * 0.9e6))
                for chunk in range(self.draw.randint(1, 4)):
                    pause = 0 if chunk == 0 else self.draw.randrange(200_000)
                    lines.append(f"{flow},{start},{pause},{self.draw.randint(1, 60_000)}\n")
            self.files[name] = "".join(lines)
            keys |= {"trace": name, "configuration": self.pick("replay", "collapsed", "synthetic")}
            keys.pop("arrivals", None)
            return keys
        keys["sizes"] = self.pick("1B", "3KB", "50KB", "pareto")
        if keys["sizes"] == "pareto":
            keys["pareto_max"] = "200KB"
        # At most some hundred flows.
        if self.chance(0.5):
            keys["load"] = self.pick(0.1, 0.5, 0.9)
            if keys["sizes"] == "1B":
                keys["load"] = 0.01
        else:
            keys["flows_per_s"] = round(self.pick(5, 50, 200) / self.duration_s, 3)
        return keys

    def probe(self) -> Keys:
        return self.common() | self.some({
            "kind": lambda: self.pick("ping", "udp"),
            "interval": lambda: self.time(max(1e-3, self.duration_s / 300), self.duration_s),
        }, 0.6)  # fmt: skip

    def host(self) -> Keys:
        keys = self.some({
            "pacing": lambda: self.pick("internal", "fq"),
            "tsq": lambda: self.pick("1ms", "2ms", "4ms", "8ms"),
            "gso_max_segments": lambda: self.pick(1, 2, 44, 1000),
            "receive_aggregation": lambda: self.time(1e-6, 0.02),
            "ack_policy": lambda: self.pick("linux", "every_packet", "every_second"),
            "tcp": lambda: self.pick(*KERNELS),
            "cc_facts": lambda: self.pick("google", "stock"),
            "rate_restart": lambda: self.pick("unacknowledged", "inflight"),
            "receive_low_water": lambda: self.pick("1B", "4KB", "32KB"),
            "rmem_max": lambda: self.pick("10KB", "300KB", "64MB"),
            "wmem_max": lambda: self.pick("10KB", "300KB", "64MB"),
            "initial_cwnd": lambda: self.pick(1, 2, 3, 10, 100),
            "access_rate": lambda: self.rate(0.5, 10),
            "arp": lambda: True,
            "packet_cost": lambda: self.time(1e-7, 5e-4),
            "ack_cost": lambda: self.time(1e-7, 5e-4),
            "send_cost": lambda: self.time(1e-7, 5e-4),
            "handshake_cost": lambda: self.time(1e-7, 1e-2),
        }, 0.25)  # fmt: skip
        if self.chance(0.15):
            keys |= {"reader_pause": self.time(1e-4, 0.05)}
        return keys
