"""What version 5 of the contract added: the timer, more facts of the connection, recovery by the
host for an algorithm that sees every ACK, and when lost packets were sent."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from external_files import GROW, PATH, run, works
from fullpipe import CaState, Controller, EventKind
from fullpipe.authoring import check
from fullpipe.base.errors import RunError, UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion import userfiles
from fullpipe.congestion.userfiles import classes
from fullpipe.engines import engine
from fullpipe.kernel.calls import read_calls
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from kernel_host import why_not

CC = Path(__file__).parents[1] / "cc"
_VERIFIER = (CC.parents[1] / "docs" / "reference" / "verifier.md").read_text(encoding="utf-8")
#: The page's pieces of C, alternately refused and accepted, by its headings.
PAIRS = {
    heading: re.findall(r"```c\n(.*?)```", text, re.S)
    for heading, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", _VERIFIER, re.S | re.M)
    if "```c" in text
}


def test_the_timer_comes_at_the_very_time_that_was_asked_for() -> None:
    asked: list[int] = []
    came: list[tuple[int, int]] = []

    class Clock(Controller):
        flags = Controller.WANTS_TIMER

        def init(self) -> None:
            self.ctl.cwnd = 10
            self.ask(1)

        def ask(self, after_us: int) -> None:
            asked.append(self.conn.now_us + after_us)
            self.ctl.timer_us = asked[-1]

        def on_event(self, event: Any) -> None:
            if event.kind == EventKind.TIMER:
                assert self.ctl.timer_us == 0
                came.append((self.conn.now_us, event.value))
                self.ask(777 + 13 * len(came))

    run(classes.hand_over(Clock), duration="2s")
    assert len(came) > 100
    assert came == [(time_us, 0) for time_us in asked[: len(came)]]


def test_a_time_that_has_passed_is_due_a_microsecond_later_and_a_later_wish_replaces_it() -> None:
    came: list[int] = []
    began: list[int] = []

    class Late(Controller):
        flags = Controller.WANTS_TIMER

        def init(self) -> None:
            began.append(self.conn.now_us)
            self.ctl.timer_us = 1

        def on_event(self, event: Any) -> None:
            if event.kind == EventKind.TIMER:
                came.append(self.conn.now_us - began[0])
                self.ctl.timer_us = began[0] + [5_000_000, 30_000, 0][min(len(came) - 1, 2)]

        def on_ack(self, ack: Any) -> None:
            if len(came) == 1:
                self.ctl.timer_us = began[0] + 2_000_000

    run(classes.hand_over(Late))
    assert came[0] == 1
    assert came[1] == 2_000_000


def test_details_say_what_the_path_and_the_application_are() -> None:
    seen: list[dict[str, int]] = []
    names = ("now_us", "min_rtt_us", "acks", "rcv_tsval", "rcv_tsecr", "ts_tick_us", "srtt_us",
             "unsent_bytes", "unsent_packets", "mss_bytes", "snd_nxt", "delivered")  # fmt: skip

    class Reads(Controller):
        flags = Controller.OWNS_CWND | Controller.WANTS_DETAILS

        def on_ack(self, ack: Any) -> None:
            self.ctl.cwnd = 8
            seen.append({name: getattr(self.conn, name) for name in names})

    run(classes.hand_over(Reads), path={"rate": "10mbit", "rtt": "20ms", "buffer": "100p"})
    late = seen[100:]
    for one in late:
        # That of the handshake, whose packets are small. All of it is on the
        # way of the ACKs; what a window of 8 packets queues is on the other.
        assert one["min_rtt_us"] == pytest.approx(20_000, rel=0.01)
        assert one["ts_tick_us"] == 1000
        assert 0 <= one["rcv_tsval"] - one["rcv_tsecr"] <= 13
        assert one["now_us"] // 1000 - one["rcv_tsval"] == 20
        assert one["unsent_packets"] == -(-one["unsent_bytes"] // one["mss_bytes"])
        assert one["unsent_bytes"] > 0  # the application writes as much as the buffer takes
    acks = [one["acks"] for one in seen]
    assert acks == list(range(acks[0], acks[0] + len(acks)))


def test_details_are_not_filled_for_who_does_not_ask() -> None:
    seen: set[int] = set()

    class Plain(Controller):
        def on_ack(self, ack: Any) -> None:
            self.slow_start(ack.acked_sacked)
            seen.update((self.conn.min_rtt_us, self.conn.acks, self.conn.rcv_tsval))

    run(classes.hand_over(Plain))
    assert seen == {0}


class Reno(Controller):
    """As cc/reno.h, where the host recovers and it sees every ACK."""

    flags = Controller.OWNS_CWND | Controller.HOST_RECOVERS

    def init(self) -> None:
        self.prior_cwnd = self.una = 0

    def on_ack(self, ack: Any) -> None:
        # The host asks Reno only where the cumulative ACK advances (tcp_may_raise_cwnd()).
        advances, self.una = self.conn.snd_una != self.una, self.conn.snd_una
        if advances and self.conn.is_cwnd_limited:
            left = ack.acked_sacked
            if self.ctl.cwnd < self.ctl.ssthresh:
                left = self.slow_start(left)
            self.additive_increase(self.ctl.cwnd, left)

    def on_event(self, event: Any) -> None:
        if event.kind == EventKind.SSTHRESH:
            self.prior_cwnd = self.ctl.cwnd
            self.ctl.ssthresh = max(self.ctl.cwnd // 2, 2)
        elif event.kind == EventKind.UNDO:
            self.ctl.cwnd = max(self.ctl.cwnd, self.prior_cwnd)


@pytest.mark.parametrize(
    ("change", "share"),
    [({"buffer": "0.3bdp"}, 0.003), ({"loss": "0.1%"}, 0.003), ({"loss": "1%"}, 0.02)],
)
def test_the_host_recovers_as_it_does_for_reno(change: dict[str, str], share: float) -> None:
    """Paced by fq in both cases: an algorithm that owns its window always is."""
    path = {"rate": "20mbit", "rtt": "40ms", "buffer": "1bdp", **change}
    usual = run("reno", path=path, duration="20s", host={"pacing": "fq"})
    ours = run(classes.hand_over(Reno), path=path, duration="20s", host={"pacing": "fq"})
    there, here = (one["flows"]["bytes_delivered"][0] for one in (usual, ours))
    assert here == pytest.approx(there, rel=share)
    recoveries = [one["flows"]["recoveries"][0] for one in (usual, ours)]
    assert recoveries[1] == pytest.approx(recoveries[0], abs=1)


def test_after_an_episode_the_window_is_the_threshold() -> None:
    ends: list[tuple[int, int]] = []

    class Watches(Reno):
        def on_event(self, event: Any) -> None:
            super().on_event(event)
            self.over = (
                event.kind == EventKind.STATE
                and self.conn.ca_state == CaState.RECOVERY
                and event.value == CaState.OPEN
            )

        def init(self) -> None:
            super().init()
            self.over = False

        def on_ack(self, ack: Any) -> None:
            if self.over:
                ends.append((self.ctl.cwnd, self.ctl.ssthresh))
            self.over = False
            super().on_ack(ack)

    run(classes.hand_over(Watches), path={**PATH, "loss": "1%"}, duration="10s")
    assert len(ends) > 5
    assert all(cwnd == ssthresh for cwnd, ssthresh in ends)


@pytest.mark.parametrize(
    "path", [{"loss": "1%"}, {"buffer": "0.2bdp"}, {"jitter": "2ms"}, {"loss": "15%"}]
)
def test_lost_packets_were_sent_within_the_interval_that_the_contract_derives(
    path: dict[str, str],
) -> None:
    whole = {"rate": "20mbit", "rtt": "40ms", "buffer": "1bdp", **path}
    tables = run(str(CC / "lost_when.h"), path=whole, duration="20s")
    samples = tables["cc_samples"]
    assert samples["extra_acked_packets"][-1] > 20
    assert samples["round_count"][-1] == 0


def _with(code: str, folder: Path) -> str:
    """A file with a piece of C where the window grows."""
    path = works(folder)
    text = path.read_text().replace(GROW, f"{{ {code} }}")
    text = text.replace("u32 prior_cwnd;", "u32 prior_cwnd, slot[8], ten[10];")
    path.write_text(text.replace('#include "cc.h"', '#include "fixed.h"\n#include "cc.h"', 1))
    return str(path)


#: Refused after a million instructions, which an emulated 6.12 or 7.3 does not reach while the
#: engine waits, and an emulated 6.1 only on a fast host (docs/reference/verifier.md).
SLOW_TO_REFUSE = ("A loop whose end is not known",)


@pytest.mark.live
@pytest.mark.root
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize(
    "heading",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW_TO_REFUSE else name
        for name in PAIRS
    ],
)
def test_a_kernel_refuses_and_accepts_what_the_page_says(heading: str, tmp_path: Path) -> None:
    refused, accepted = PAIRS[heading]
    for name, code, is_accepted in (("no", refused, False), ("yes", accepted, True)):
        (tmp_path / name).mkdir()
        path = _with(code, tmp_path / name)
        try:
            userfiles.compile_bpf(userfiles.read(path))
            check._loads(path)
        except (UserError, RunError) as error:
            assert not is_accepted, error
        else:
            assert is_accepted, f"{heading}: accepted"


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12", "7.3"])
@pytest.mark.parametrize("heading", PAIRS)
def test_the_kernels_of_the_machine_refuse_and_accept_what_the_page_says(
    heading: str, kernel: str, tmp_path: Path
) -> None:
    refused, accepted = PAIRS[heading]
    for name, code, is_accepted in (("no", refused, False), ("yes", accepted, True)):
        (tmp_path / name).mkdir()
        path = _with(code, tmp_path / name)
        document = {"duration": "0.2s", "path": PATH, "flow": [{"cc": path}]}
        try:
            userfiles.compile_bpf(userfiles.read(path))
        except UserError as error:
            assert not is_accepted, error  # the compiler knows it already
            continue
        if heading in SLOW_TO_REFUSE and not is_accepted and kernel != "6.1":
            continue  # the host's own kernel is asked above
        made = resolve(make_scenario(document))
        try:
            engine("vm").run(made, lambda _done: True, {"kernel": kernel})
        except (UserError, RunError) as error:
            refusals = ["the kernel refuses"] + ["hung"] * (heading in SLOW_TO_REFUSE)
            assert not is_accepted and any(words in str(error) for words in refusals), error
        else:
            assert is_accepted, f"{heading}: {kernel} accepts it"


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12", "7.3"])
def test_facts_and_timer_of_a_kernel_are_what_the_page_says(kernel: str, tmp_path: Path) -> None:
    """On a path of 20 ms and 10 Mbit/s, by the trace of a flow of LEDBAT++."""
    cc = str(shipped("examples") / "cc" / "ledbat.h")
    path = {"rate": "10mbit", "rtt": "20ms", "buffer": "100p"}
    plan = resolve(make_scenario({"duration": "4s", "path": path, "flow": [{"cc": cc}]}))
    options = {"kernel": kernel, "cc_trace": str(tmp_path / "trace")}
    engine("vm").run(plan, lambda _done: True, options)
    names = ("min_rtt_us", "acks", "rcv_tsval", "rcv_tsecr", "ts_tick_us", "unsent_bytes",
             "unsent_packets", "mss_bytes", "delivered", "srtt_us", "now_us")  # fmt: skip
    columns = ["call", "event_value", *(f"conn_{name}" for name in names)]
    calls = read_calls(tmp_path / "trace", columns).to_pylist()
    acks = [call for call in calls if call["call"] == "ack"][20:]
    assert len(acks) > 500
    one_way = [(call["conn_rcv_tsval"] - call["conn_rcv_tsecr"]) % 2**32 for call in acks]
    for call, ticks in zip(acks, one_way, strict=True):
        # A full packet takes 1.2 ms, the handshake's less; the host takes some us.
        assert call["conn_min_rtt_us"] == pytest.approx(20_000, rel=0.07)
        assert call["conn_ts_tick_us"] == 1000
        queued_us = call["conn_srtt_us"] - call["conn_min_rtt_us"]
        assert ticks - min(one_way) <= queued_us / 1000 + 40
        packets = -(-call["conn_unsent_bytes"] // call["conn_mss_bytes"])
        assert call["conn_unsent_packets"] == packets
    assert max(call["conn_unsent_bytes"] for call in acks) > 100_000  # a bulk flow's send buffer
    for before, after in pairwise(acks):
        came = after["conn_acks"] - before["conn_acks"]
        assert came >= 0 and after["conn_delivered"] - before["conn_delivered"] <= 100 * came
    timers = [call for call in calls if call["call"] == "timer"]
    # Before the next ACK or sending: within the time between two ACKs.
    assert timers and max(call["event_value"] for call in timers) < 40_000


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12", "7.3"])
def test_a_kernel_takes_every_helper_and_fact_and_its_calls_replay(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "random loss"
    monkeypatch.setattr(check, "PATHS", {name: check.PATHS[name]})
    monkeypatch.setattr(check, "_costed", lambda *_: check.Step("cost", None, ""))
    steps = {step.name: step for step in check.check(str(CC / "everything.h"), [kernel], seeds=1)}
    step = steps[f"vm {kernel}, {name}"]
    assert step.holds, step.words
