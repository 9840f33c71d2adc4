"""The real module of a kernel's file as the judge of what fullpipe makes of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fullpipe.authoring import judges
from fullpipe.authoring.judges import Figures
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import module
from fullpipe.congestion.userfiles.kernel_files import read_kernel_file
from fullpipe.engines import engine
from fullpipe.engines.vm import hardware, headers, image, kernels
from kernel_files import PLAIN, write

REAL = Figures(cwnd=40.0, ssthresh=30.0, sent=2000, again=50)
DRAWS = """
#include <linux/random.h>
static inline u32 plain_draw(void)
{
	return get_random_u32_below(8);
}
"""
needs_machine = pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")


def built(folder: Path, text: str) -> tuple[Path, str]:
    path = write(folder, "plain", text)
    return module.build_alone(read_kernel_file(path), headers.tree(kernels.find("6.12", None)))


def outside(ours: list[Figures], real: Figures, more: float = 0.0) -> list[str]:
    return list(judges._outside(ours, real, more))


def test_runs_agree_within_two_percent_or_three_packets() -> None:
    near = Figures(cwnd=42.9, ssthresh=27.1, sent=1961, again=53)
    assert outside([near], REAL) == []
    far = Figures(cwnd=43.1, ssthresh=30.0, sent=1959, again=54)
    assert outside([far], REAL) == [
        "cwnd 43.1 against 40.0", "packets sent 1,959.0 against 2,000.0",
        "packets sent again 54.0 against 50.0",
    ]  # fmt: skip


def test_behind_random_loss_the_range_of_the_seeds_counts() -> None:
    seeds = [Figures(20.0, 15.0, 1000, 20), Figures(36.0, 28.0, 1900, 60)]
    assert outside(seeds, REAL, 0.15) == []
    assert outside(seeds[:1], REAL, 0.15) != []


def test_a_threshold_that_one_never_has_is_a_difference() -> None:
    never = Figures(cwnd=40.0, ssthresh=None, sent=2000, again=50)
    assert outside([never], REAL) == ["ssthresh none against 30.0"]
    assert outside([REAL], never) == ["ssthresh 30.0 against none"]
    assert outside([never], never) == []


def test_what_needs_ecn_is_judged_behind_a_queue_that_marks_every_packet(tmp_path: Path) -> None:
    (tmp_path / "ecn").mkdir()
    needs = PLAIN.replace(".owner", ".flags = TCP_CONG_NEEDS_ECN,\n\t.owner")
    assert judges.paths_of(str(write(tmp_path, "plain", PLAIN))) == list(judges.PATHS)
    path = str(write(tmp_path / "ecn", "plain", needs))
    assert judges.paths_of(path) == [*judges.PATHS, "step marks"]
    plan = judges._plan(path, "step marks", 1)
    result = engine("sim").run(plan, lambda _done: True, {})
    (flow,) = result.tables["flows"].to_pylist()
    assert flow["packets_delivered_ce"] > 20


@pytest.mark.parametrize("text", [b"", b"\x7fELF but no module", b"text"])
def test_a_file_that_is_no_module_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.ko").write_bytes(text)
    with pytest.raises(UserError, match=r"x\.ko: is no kernel module"):
        image.own_module(tmp_path / "x.ko")
    with pytest.raises(UserError, match=r"y\.ko: cannot be read"):
        image.own_module(tmp_path / "y.ko")


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_file_is_built_alone_under_another_name_and_the_kernels_refusal_is_told(
    tmp_path: Path,
) -> None:
    file, name = built(tmp_path, PLAIN)
    assert name == "fp_judged" and b"plain: keeps" in file.read_bytes()
    image.own_module(file)
    # The kernel's own module of that file may export the same.
    exporting = PLAIN + "EXPORT_SYMBOL_GPL(plain_ssthresh);\n"
    exporting = exporting.replace("static u32 plain_ssthresh", "u32 plain_ssthresh")
    assert b"ksymtab_plain_ssthresh" not in built(tmp_path, exporting)[0].read_bytes()
    with pytest.raises(RunError, match="BUILD_BUG_ON failed: HALF != 1"):
        built(tmp_path, PLAIN.replace("HALF != 512", "HALF != 1"))


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_simulator_and_glue_do_what_the_real_module_does(tmp_path: Path) -> None:
    path = str(write(tmp_path, "plain", PLAIN))
    verdict = judges.judged(path, "bulk", judges.build(path, "6.12"))
    assert verdict.differences == [] and "packets" in verdict.real.words()


@pytest.mark.parametrize(("text", "is_told"), [(PLAIN, True), (PLAIN + DRAWS, False)])
def test_a_file_that_draws_random_numbers_is_judged_by_its_range(
    text: str, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retransmissions are 50 in the kernel and 55 elsewhere."""
    near = Figures(40.0, 30.0, 2000, 55)
    monkeypatch.setattr(judges, "_judge", lambda *_given: REAL)
    monkeypatch.setattr(judges, "_run", lambda *_given, **_options: near)
    real = judges.RealModule("6.12", tmp_path / "x.ko", "plain")
    verdict = judges.judged(str(write(tmp_path, "plain", text)), "bulk", real)
    words = "packets sent again 55.0 against 50.0"
    told = [f"module of fullpipe: {words}", f"simulator: {words}"]
    assert verdict.differences == (told if is_told else [])


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_users_module_that_needs_ecn_has_it_as_the_kernels_dctcp(tmp_path: Path) -> None:
    needs = PLAIN.replace(".owner", ".flags = TCP_CONG_NEEDS_ECN,\n\t.owner")
    file, name = built(tmp_path, needs)
    plan = judges._plan(f"kernel:{name}", "step marks", 1)
    options = {"kernel": "6.12", "module": str(file)}
    (flow,) = engine("vm").run(plan, lambda _done: True, options).tables["flows"].to_pylist()
    assert flow["packets_delivered_ce"] > 20


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_another_module_than_the_files_is_told_from_it(tmp_path: Path) -> None:
    path = str(write(tmp_path, "plain", PLAIN))
    (tmp_path / "other").mkdir()
    file, name = built(tmp_path / "other", PLAIN.replace("* keep", "* 1000"))
    found = judges.judged(path, "bulk", judges.RealModule("6.12", file, name)).differences
    assert any(one.startswith("module of fullpipe: cwnd") for one in found)
    assert any(one.startswith("simulator: cwnd") for one in found)
