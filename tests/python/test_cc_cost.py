"""What a congestion control costs an ACK: the guest counts what was put there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from external_files import GROW, works
from fullpipe.authoring import cost
from fullpipe.engines.vm import kernels
from fullpipe.engines.vm.kernels import Kernel

#: Steps that no compiler folds: each multiplies, adds and folds again.
LOOP = """
	u32 work = left;
	for (u32 i = 0; i < STEPS; i++)
		work = work * 1664525u + (work >> 7);
	ctl->cwnd_cnt += work == 12345;
"""


def ack_cost(folder: Path, steps: int) -> float:
    (folder / str(steps)).mkdir()
    path = works(folder / str(steps))
    path.write_text(path.read_text().replace(GROW, GROW + LOOP.replace("STEPS", str(steps))))
    programs = cost.counted(str(path), "6.12")
    assert programs["fp_cong_avoid"][0] > 1000
    return programs["fp_cong_avoid"][1]


@pytest.mark.vm
def test_two_hundred_steps_cost_the_instructions_that_they_are_compiled_to(tmp_path: Path) -> None:
    none, some = (ack_cost(tmp_path, steps) for steps in (0, 200))
    # A step is seven instructions of eBPF (copy, shift, multiply, add, count, a branch, a jump), of
    # which x86 makes two of the branch.
    assert 7 <= (some - none) / 200 <= 9


def test_what_no_file_decides_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    image = tmp_path / "vmlinuz"
    image.write_bytes(b"a kernel")
    monkeypatch.setattr(cost, "find_kernel", lambda *_: Kernel("6.12", image, tmp_path))
    measured: list[str] = []

    def counted(name: str, _release: str) -> cost.Programs:
        measured.append(Path(name).name)
        return {"fp_cong_avoid": (10, 100.0), "fp_min_tso_segs": (5, 20.0)}

    def guest(name: str, _release: str) -> float:
        measured.append(f"guest of {Path(name).name}")
        return 20000.0

    monkeypatch.setattr(cost, "counted", counted)
    monkeypatch.setattr(cost, "_of_guest", guest)
    path = works(tmp_path)
    first = cost.costs(str(path), "6.12")
    assert {"kernel:cubic", "bbr3", "nothing.h", "mine.h"} <= {*measured}
    measured.clear()
    assert cost.costs(str(path), "6.12") == first
    assert measured == ["mine.h", "guest of mine.h"]
    image.write_bytes(b"another kernel")
    measured.clear()
    cost.costs(str(path), "6.12")
    assert "bbr3" in measured and "nothing.h" in measured


@pytest.mark.vm
@pytest.mark.parametrize("release", kernels.VERSIONS)
def test_a_program_that_does_nothing_takes_less_than_any_that_calls_the_kernels_cubic(
    release: str,
) -> None:
    if release != kernels.DEFAULT and kernels.cached(release) is None:
        pytest.skip(f"Debian's kernel {release} could not be downloaded")
    programs = cost.counted("kernel:cubic", release)
    nothing = programs.pop("fp_min_tso_segs")[1]
    if "fp_cwnd_event_t" in programs:  # since 7.1 CUBIC has cwnd_event_tx_start() instead
        programs.pop("fp_cwnd_event", None)
    assert {"fp_cong_avoid", "fp_pkts_acked"} <= {*programs}
    assert 10 < nothing < min(each for _, each in programs.values())
