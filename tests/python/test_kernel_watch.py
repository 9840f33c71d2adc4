"""`fullpipe kernel watch`: what the algorithm itself has of another program's socket, without being
in its way; and a recording of it that a report draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fullpipe import kernel
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.recording.recording import Recording
from fullpipe.report.page import write_report
from kernel_host import fullpipe, loaded, program, why_not

if reason := why_not():
    pytest.skip(reason, allow_module_level=True)

pytestmark = [pytest.mark.live, pytest.mark.root]

__all__ = ["loaded"]
BYTES = 4_000_000
VIVACE = str(shipped("examples") / "cc" / "vivace.h")


def test_the_state_of_another_programs_socket_is_seen_and_recorded(
    loaded: Callable[..., str], tmp_path: Path
) -> None:
    name = loaded("bbr3", loss_thresh=0.05)
    with program(name, BYTES) as traffic:
        looks = kernel.watch(100, tmp_path / "recording")
        before = [row for row in next(looks) if row["kernel_name"] == name]
        traffic.transfer()
        after = [row for row in next(looks) if row["kernel_name"] == name]
        while after[0]["bytes_delivered"] - before[0]["bytes_delivered"] < BYTES:
            after = [row for row in next(looks) if row["kernel_name"] == name]
        looks.close()
        # Whoever watched holds nothing: the program's own close ends the connection.
    (row,) = after
    assert row["cc"] == "bbr3[loss_thresh=0.05]"
    assert row["phase"] in ("startup", "drain", "up", "down", "cruise", "refill", "probe_rtt")
    assert 0 < row["min_rtt_us"] <= row["srtt_us"]
    # A loopback whose queue passes 100 Mbit/s. No sample is of less than a round trip
    # (tcp_rate_gen()), and none has more than the queue and its bucket hold: on a host with other
    # work they can be passed on at once.
    assert 10e6 < row["max_bw_bps"] < 100e6 + (45_000 + 20_000) * 8e6 / row["min_rtt_us"]
    assert row["cwnd_packets"] >= 4
    recording = Recording.open(tmp_path / "recording")
    assert "bbr3[loss_thresh=0.05]" in recording.table("flows")["cc"].to_pylist()
    assert recording.metadata["constants"]["bbr3[loss_thresh=0.05]"]["loss_thresh"] > 0.04
    page = write_report([recording], tmp_path / "r.html", light=True).read_text("utf-8")
    assert "Phases of the algorithms" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cc", "columns"),
    [
        ("cubic", ("w_max_packets", "k_s", "w_est_packets", "hystart_found")),
        (VIVACE, ("utility", "gradient", "loss_rate", "rtt_gradient", "rate_bps")),
    ],
)
def test_an_algorithms_own_variables_are_seen(
    cc: str, columns: tuple[str, ...], loaded: Callable[..., str], tmp_path: Path
) -> None:
    name = loaded(cc)
    with program(name, BYTES) as traffic:
        looks = kernel.watch(50, tmp_path / "recording")
        next(looks)
        traffic.transfer()
        (row,) = [row for row in next(looks) if row["kernel_name"] == name]
        looks.close()
    assert {*columns} <= {*row["variables"]}
    assert row["variables"][columns[-1]] is not None
    samples = Recording.open(tmp_path / "recording").table("cc_samples")
    assert {*columns} <= {*samples.column_names}
    assert samples[columns[-1]].drop_null().to_pylist()


def test_the_command_prints_a_line_of_json_for_each_look(loaded: Callable[..., str]) -> None:
    name = loaded("cubic")
    with program(name, 100_000) as traffic:
        traffic.transfer()
        answer = fullpipe("kernel", "watch", "--interval", "50ms", "--count", "2", "--json")
        shown = fullpipe("kernel", "watch", "--count", "1")
    assert answer.returncode == 0, answer.stderr
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(lines) == 2
    (row,) = [row for row in lines[0] if row["kernel_name"] == name]
    assert row["phase"] in ("slow_start", "avoidance")
    assert "cubic" in shown.stdout and "127.0.0.1" in shown.stdout


@pytest.mark.parametrize("interval", ["1", "1ms", "x", "2h"])
def test_an_interval_that_is_none_is_refused(interval: str) -> None:
    answer = fullpipe("kernel", "watch", "--interval", interval)
    assert answer.returncode == 2
    assert "--interval" in answer.stderr


def test_a_folder_that_exists_is_not_touched(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        next(kernel.watch(100, tmp_path))
