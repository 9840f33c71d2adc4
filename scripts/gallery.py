"""Writes the gallery: docs/gallery.md and a picture of each shipped scenario, run by engine sim.

python scripts/gallery.py [--page-only] [NAME...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "images" / "gallery"
#: Inches, and dots per inch: readable in a page, and small.
_SIZE, _DPI = (6.4, 2.6), 90


class Entry(NamedTuple):
    """What the gallery says of a scenario. `plot`: the figure of a run that shows it."""

    title: str
    plot: str
    sentence: str
    look: str


ENTRIES = {
    "demo": Entry(
        "BBRv3 against CUBIC", "throughput",
        "One upload of each over 50 Mbit/s and 40 ms with a buffer of 2 BDP.",
        "BBRv3 begins with the whole link; CUBIC wins back some 40 % of it.",
    ),
    "home-bufferbloat": Entry(
        "Bufferbloat at home", "rtt",
        "A backup over a modem of 10 Mbit/s with a deep buffer, and a page every ten seconds.",
        "RTTs of a third of a second. In the tables: a page of 100 KB takes 1.4 s.",
    ),
    "home-fq-codel": Entry(
        "The same with FQ-CoDel", "rtt",
        "The line of the scenario above with a queue that keeps flows apart and itself short.",
        "The backup's RTT stays below 40 ms except where a page begins, and a page takes 0.23 s.",
    ),
    "home-cake": Entry(
        "A router with SQM", "throughput",
        "An upload and a download over 20 Mbit/s up and down behind CAKE with four classes.",
        "Both directions are nearly full, and CUBIC's saw is flat.",
    ),
    "both-ways": Entry(
        "A download beside an upload", "throughput",
        "An asymmetric line on which the ACKs of the download wait in the queue of the upload.",
        "The download stays below its line's rate while the upload runs.",
    ),
    "call": Entry(
        "A call beside a download", "throughput",
        "An application that sends 2 Mbit/s and never has more to send, beside a bulk flow.",
        "The call stays at 2 Mbit/s; the dips are the bulk flow's, BBRv3 in ProbeRTT.",
    ),
    "call-and-video": Entry(
        "Datagrams of a call and a video", "queue",
        "A voice call and a video of datagrams beside an upload that comes and goes.",
        "The queue grows with the upload; in the tables: frames that came in time.",
    ),
    "latecomer": Entry(
        "Latecomers", "throughput",
        "A second and a third flow join, two seconds after one another.",
        "The time until the three lines meet.",
    ),
    "rtt-unfairness": Entry(
        "A near flow and a far flow", "throughput",
        "Two flows of one congestion control with different base RTTs.",
        "The near flow's share; BBR turns it round (`--set flow.0.cc=bbr3 --set flow.1.cc=bbr3`).",
    ),
    "parking-lot": Entry(
        "Three bottlenecks in a row", "throughput",
        "One flow passes three links, and one flow each passes only one of them.",
        "The long flow gets 2 to 4 of 20 Mbit/s.",
    ),
    "short-buffer": Entry(
        "A tenth of a BDP of buffer", "throughput",
        "A router with little buffer, and congestion controls with and without need of a queue.",
        "BBRv3 takes half of the link from CUBIC and Reno.",
    ),
    "variants": Entry(
        "One constant changed", "cwnd",
        "CUBIC beside variants that give up less or more of their window at a loss.",
        "The depth of the saw's teeth.",
    ),
    "receive-window": Entry(
        "Limited by the receiver", "throughput",
        "A receive window of 64 KB over 20 ms allows 26 Mbit/s on any line.",
        "One flow stays at 15 Mbit/s: the other's queue lengthens its RTT.",
    ),
    "ecn": Entry(
        "Explicit congestion notification", "queue",
        "CoDel marks the packets of one flow and drops those of another.",
        "A queue of some milliseconds; in the tables: one flow sends nothing twice.",
    ),
    "l4s": Entry(
        "L4S", "rtt",
        "Prague beside CUBIC over DualPI2 (RFC 9332).",
        "Prague's RTT stays at the path's while CUBIC's packets wait some 15 ms.",
    ),
    "l4s-kernel": Entry(
        "L4S in a kernel", "rtt",
        "Prague beside CUBIC over the kernel's DualPI2; also for engine vm with Linux 7.3.",
        "The same two levels as above. The picture is the simulator's.",
    ),
    "data-center": Entry(
        "Incast", "queue",
        "Eight servers answer one client at once through a shallow port that marks.",
        "The backlog stays at a third of the limit until the answers are through.",
    ),
    "ten-gigabit": Entry(
        "10 Gbit/s", "throughput",
        "Segmentation offload, receive aggregation and pacing by fq, as fast hosts are set up.",
        "The link is full at once; BBRv3 takes it from CUBIC within 5 s.",
    ),
    "busy-receiver": Entry(
        "A busy receiver", "throughput",
        "A receiver whose processor has little to spare at 10 Gbit/s.",
        "The two flows part at 3.5 s and meet again at 4.5 s.",
    ),
    "short-flows": Entry(
        "Short flows", "queue",
        "Flows of a web search's sizes with half of the link's load, from two senders.",
        "Bursts of queue; in the tables: completion times by size.",
    ),
    "page-small": Entry(
        "A page of 5 MB", "queue",
        "A page in 19 requests over 4 connections, loaded during an upload.",
        "The page's objects in the queue down, the upload in the queue up.",
    ),
    "page-large": Entry(
        "A page of 11 MB", "queue",
        "A page in 39 requests over 4 connections, loaded during an upload.",
        "As above with twice as many bursts.",
    ),
    "changing-rate": Entry(
        "A rate that changes", "throughput",
        "A radio link falls to a tenth of its rate, recovers, and is gone for two seconds.",
        "After the outage at 30 s one flow is back at once, the other 4 s later.",
    ),
    "varying-capacity": Entry(
        "RFC 8867, section 5.1", "queue_delay",
        "A link of 1, 2.5, 0.6 and again 1 Mbit/s under a video that does not adapt.",
        "480 ms of queueing from 60 s on, when the rate falls below the video's.",
    ),
    "cellular": Entry(
        "A cellular downlink", "throughput",
        "A rate that swings tenfold within seconds, with ACKs in aggregates and bursts of loss.",
        "How much of the room under the dashed line the flows use.",
    ),
    "leo": Entry(
        "A low orbit", "throughput",
        "Another satellite every 15 s, with another rate and delay, and 60 ms of nothing between.",
        "The time after each change until the flow has the new rate.",
    ),
    "satellite": Entry(
        "A geostationary satellite", "throughput",
        "A long round trip with some loss that is no congestion.",
        "Who takes loss for congestion starves.",
    ),
    "jitter": Entry(
        "Jitter of a wireless hop", "throughput",
        "Packets that come while a slot waits leave together.",
        "The shares, which change places after 13 s.",
    ),
    "wifi": Entry(
        "Wi-Fi at home", "rtt",
        "A laptop uploads over 802.11n while another station downloads.",
        "RTTs with a FIFO in the driver; then try `queue.kind = \"mac80211\"`.",
    ),
    "wifi-behind-cake": Entry(
        "Wi-Fi behind CAKE", "rtt",
        "The uplink of a laptop, shaped to a bit less than the channel carries.",
        "RTTs that stay low, since the queue stands where CAKE manages it.",
    ),
    "home-sqm-call": Entry(
        "A home with SQM and a call", "rtt",
        "Wi-Fi with three stations, a router with CAKE, and a cable modem with a long buffer.",
        "The upload's RTT, which the call shares; without CAKE it is half a second.",
    ),
}  # fmt: skip

_HEAD = """# Gallery

Every scenario that comes with fullpipe, with a picture of a run in the simulator (seed 1) and what
to look at. `fullpipe run scenarios/NAME.toml` repeats a picture and writes a report with all
others. The files are in the folder `scenarios` of the repository. `python scripts/gallery.py` made
this page.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for name, entry in ENTRIES.items():
        words = entry.plot.replace("_", " ")
        parts.append(
            f"## {entry.title}\n\n{entry.sentence}\n\n"
            f"![{entry.title}: {words} over time](images/gallery/{name}.png)\n\n"
            f"{textwrap.fill(f'Look at: {entry.look}', 100)}\n\n"
            f"`scenarios/{name}.toml`\n"
        )
    return "\n".join(parts)


def draw(name: str) -> Path:
    """Runs a scenario and writes its picture."""
    import fullpipe

    with tempfile.TemporaryDirectory() as folder:
        scenario = ROOT / "scenarios" / f"{name}.toml"
        runs = fullpipe.run(scenario, out=Path(folder) / "run")
        figure = runs.plot(ENTRIES[name].plot).figure
        figure.set_size_inches(*_SIZE)
        path = PICTURES / f"{name}.png"
        figure.savefig(path, dpi=_DPI, pil_kwargs={"optimize": True})
    return path


def main() -> int:
    """Writes the page and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page-only", action="store_true", help="draw no picture")
    parser.add_argument("names", nargs="*", help="scenarios to draw; default: all")
    given = parser.parse_args()
    PAGE.write_text(page(), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in () if given.page_only else given.names or ENTRIES:
        print(draw(name).relative_to(ROOT), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
