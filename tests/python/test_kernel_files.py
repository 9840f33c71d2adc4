"""Files of the Linux kernel run unchanged in the simulator; what cannot work is refused."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from external_files import run
from fullpipe.authoring import kernel_sources
from fullpipe.authoring.check import check
from fullpipe.authoring.kernel_import import import_kernel_file
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.cli.app import app
from fullpipe.congestion import userfiles
from fullpipe.engines.vm import debian
from kernel_files import (
    CONTROL_4_9,
    CONTROL_6_10,
    DIALECTS,
    PLAIN,
    RATED,
    STAMPS_4_9,
    USER,
    plain,
    write,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def imported(path: Path, folder: Path | None = None) -> Path:
    return import_kernel_file(path, None, folder or path.parent)[0]


def test_reno_in_the_kernels_form_leaves_the_recording_of_reno(tmp_path: Path) -> None:
    path = imported(plain(tmp_path))
    assert (tmp_path / "tcp_plain.c").read_text() == PLAIN
    own, known = run(str(path)), run("reno")
    assert own["flow_samples"] == known["flow_samples"]
    assert own["events"] == known["events"]


@pytest.mark.slow
def test_a_module_parameter_is_a_constant_that_the_modules_start_sees(tmp_path: Path) -> None:
    path = imported(plain(tmp_path))
    usual = run(str(path))["flows"]
    gentle = run(str(path), cc={"plain": {"keep": 870}})["flows"]
    assert gentle == run("reno", cc={"reno": {"beta": 870 / 1024}})["flows"] != usual
    doubled = plain(tmp_path, "shift = ilog2(2 * HALF)", "shift = ilog2(keep * 2)")
    assert doubled == tmp_path / "tcp_plain.c"
    # 2^(2k) >> log2(2^k * 2) of a window is half of it whatever k.
    assert run(str(path), cc={"plain": {"keep": 256}})["flows"] == usual


def test_kernels_before_and_after_6_10_call_cong_control_with_other_arguments(
    tmp_path: Path,
) -> None:
    found = []
    for number, arguments in enumerate((CONTROL_4_9, CONTROL_6_10)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = imported(write(folder, "rated", RATED.replace("@", arguments)))
        found.append(run(str(path)))
    assert found[0] == found[1]
    # A path of 10 Mbit/s that loses 0.2 % of the packets; headers take 4.4 %.
    assert found[0]["flows"]["bytes_delivered"][0] * 8 / 4 > 8.5e6


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_other_kernels_files_are_made_of_changes_nothing(dialect: str, tmp_path: Path) -> None:
    old, new = DIALECTS[dialect]
    assert run(str(imported(plain(tmp_path, old, new))))["flows"] == run("reno")["flows"]


@pytest.mark.slow
def test_times_of_packets_are_a_union_from_4_9_to_4_12(tmp_path: Path) -> None:
    text = RATED.replace("@", CONTROL_4_9)
    (tmp_path / "later").mkdir()
    later = imported(write(tmp_path / "later", "rated", text))
    for old, new in STAMPS_4_9.items():
        assert old in text
        text = text.replace(old, new, 1)
    assert run(str(imported(write(tmp_path, "rated", text)))) == run(str(later))


def test_a_receivers_clock_starts_anywhere(tmp_path: Path) -> None:
    # tcp_lp.c takes the difference of both clocks for a one-way delay.
    clocks = """static size_t
plain_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	info->vegas.tcpv_minrtt = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(info->vegas);
}

static struct tcp_congestion_ops plain __read_mostly = {
	.get_info	= plain_info,
"""
    old = "static struct tcp_congestion_ops plain __read_mostly = {\n"
    path = str(imported(plain(tmp_path, old, clocks)))
    starts = []
    for seed in (1, 2):
        found = [value for value in run(path, seed=seed)["cc_samples"]["min_rtt_us"] if value]
        assert max(found) - min(found) < 45, "a path of 20 ms and its queue"
        starts.append(min(found))
    assert abs(starts[0] - starts[1]) > 2**16


def test_the_source_of_a_kernel_leaves_its_congestion_controls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unpack(files: list[str], into: Path, say: object) -> None:
        package = files[0].partition("_")[0]
        (into / "usr/src").mkdir(parents=True)
        with tarfile.open(into / f"usr/src/{package}.tar.xz", "w:xz") as packed:
            for name in ("net/ipv4/tcp_plain.c", "net/ipv4/udp.c", "net/ipv6/tcp_ipv6.c"):
                text = f"{package} {name}".encode()
                member = tarfile.TarInfo(f"{package}/{name}")
                member.size = len(text)
                packed.addfile(member, io.BytesIO(text))

    monkeypatch.setattr(debian, "unpack", unpack)
    for version in ("6.1", "5.10"):
        folder = kernel_sources.fetch(version, lambda _: None)
        assert [path.name for path in folder.iterdir()] == ["tcp_plain.c"]
        found = kernel_sources.find(f"linux-{version}:tcp_plain.c").read_text()
        assert found == f"linux-source-{version} net/ipv4/tcp_plain.c"
    with pytest.raises(UserError, match=r"Linux 6\.6: .*there are 5\.10, 6\.1, 6\.12"):
        kernel_sources.fetch("6.6", lambda _: None)


def test_as_ebpf_it_is_refused_with_the_form_that_runs(tmp_path: Path) -> None:
    source = userfiles.read(imported(plain(tmp_path)))
    with pytest.raises(UserError, match=r"no eBPF; in a kernel it runs as a module: --cc-form"):
        userfiles.compile_bpf(source)


@pytest.mark.slow
def test_a_check_leaves_out_what_a_kernels_file_is_not_made_for(tmp_path: Path) -> None:
    steps = {step.name: step.holds for step in check(str(imported(plain(tmp_path))), [], seeds=1)}
    assert not [name for name, holds in steps.items() if holds is False]
    assert steps["hostile paths"]
    assert steps["strict warnings"] is None and "compiles for eBPF" not in steps


def test_a_file_that_lies_elsewhere_is_copied_with_what_it_needs(tmp_path: Path) -> None:
    kernel, here = tmp_path / "kernel", tmp_path / "here"
    kernel.mkdir()
    here.mkdir()
    write(kernel, "plain", PLAIN.replace("static u32 plain_ssthresh", "u32 plain_ssthresh"))
    (kernel / "tcp_plain.h").write_text("u32 plain_ssthresh(struct sock *sk);\n")
    path = imported(write(kernel, "user", USER), here)
    assert sorted(file.name for file in here.iterdir()) == [
        "tcp_plain.c", "tcp_plain.h", "tcp_user.c", "user.h",
    ]  # fmt: skip
    assert run(str(path))["flows"] == run("reno")["flows"]


REFUSALS = {
    "no congestion control": ("struct tcp_congestion_ops plain", "struct tcp_options plain",
                              r"tcp_plain\.c: defines no struct tcp_congestion_ops"),
    "no ssthresh": ("\t.ssthresh\t= plain_ssthresh,\n", "",
                    r"tcp_plain\.c: plain has no ssthresh; the kernel would refuse"),
    "no growth": ("\t.cong_avoid\t= plain_cong_avoid,\n", "",
                  r"plain has no cong_avoid or cong_control"),
    "shared variable": ("\tif (!tcp_is_cwnd_limited(sk))\n", "\tshift++;\n"
                        "\tif (!tcp_is_cwnd_limited(sk))\n",
                        r"tcp_plain\.c:24: shift: plain_cong_avoid\(\) changes a variable"),
    "unknown function": ("acked = tcp_slow_start(tp, acked)", "acked = tcp_flux(tp, acked)",
                         r"tcp_plain\.c:27: .*tcp_flux.*not of those that fullpipe gives"),
    "unknown field": ("tcp_is_cwnd_limited(sk)", "tp->mdev_max_us",
                      r"tcp_plain\.c:24: .*mdev_max_us.*not of those that fullpipe gives"),
    "assembly": ("\ttcp_cong_avoid_ai(tp, tcp", '\tasm("nop");\n\ttcp_cong_avoid_ai(tp, tcp',
                 r"tcp_plain\.c:31: asm: an algorithm has no inline assembly"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_cannot_work_is_refused_by_name_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    old, new, reason = REFUSALS[kind]
    path = plain(tmp_path, old, new)
    with pytest.raises(UserError, match=reason):
        imported(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.h", "", "defines no struct tcp_congestion_ops"),
        ("empty.c", "", "defines no struct tcp_congestion_ops"),
        ("plain.h", PLAIN, r"must be named \*\.c"),
    ],
)
def test_an_empty_file_and_a_header_are_no_congestion_control(
    name: str, content: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError, match=reason):
        imported(path)


@pytest.mark.slow
def test_import_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain(tmp_path)
    first = CliRunner().invoke(app, ["cc", "import", "tcp_plain.c"])
    again = CliRunner().invoke(app, ["cc", "import", "tcp_plain.c"])
    other = CliRunner().invoke(app, ["cc", "import", "tcp_plain.c", "--as", "other"])
    assert (first.exit_code, other.exit_code) == (0, 0)
    assert isinstance(again.exception, UserError)
    assert "plain.h: exists already; choose another name with --as" in str(again.exception)
    missing = CliRunner().invoke(app, ["cc", "import", "linux-6.1:tcp_illinois.c"])
    assert isinstance(missing.exception, UserError)
    assert "fullpipe doctor --linux-source 6.1" in str(missing.exception)


ARITHMETIC = r"""
#include <stdio.h>
#define bool linux_bool
#include "linux_base.h"
int main(void)
{
	static u64 random;
	u64 x = 1, y = 7;
	struct minmax low, high;
	linux_current.random = &random;
	minmax_reset(&low, 0, 1000);
	minmax_reset(&high, 0, 0);
	for (int i = 0; i < 4000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		y = x >> (i % 60) | 1;
		u64 n = x;
		u32 rest = do_div(n, (u32)(y | 1));
		u32 v = (u32)(x >> 44) % 1000;
		printf("%llu %llu %d %lu %llu %u %d %d %u %u %u %u\n", x, y, fls64(y),
			int_sqrt(x), n, rest, DIV_ROUND_CLOSEST((int)(x >> 40) - 8000000, 977),
			clamp((int)v, 100, 300), minmax_running_min(&low, 50, i / 3, v),
			minmax_running_max(&high, 50, i / 3, v), v, get_random_u32_below(10));
	}
	return 0;
}
"""


def test_the_kernels_arithmetic_is_exact(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text(ARITHMETIC)
    subprocess.run(
        ["cc", "-std=gnu11", "-w", f"-I{shipped('cc')}", source, "-o", program], check=True
    )
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    seen: list[tuple[int, int]] = []
    drawn = set()
    for number, line in enumerate(lines.splitlines()):
        x, y, top, root, quotient, rest, rounded, kept, low, high, value, drawn_one = map(
            int, line.split()
        )
        assert top == y.bit_length()
        assert root**2 <= x < (root + 1) ** 2
        assert (quotient, rest) == divmod(x, (y | 1) % 2**32)
        signed = (x >> 40) - 8_000_000
        assert rounded == (abs(signed) + 488) // 977 * (1 if signed > 0 else -1)
        assert kept == min(max(value, 100), 300)
        seen.append((number // 3, value))
        window = [v for t, v in seen if number // 3 - t <= 50]
        # The filter keeps three samples: never beyond the window's best of all, and a quarter of
        # the window suffices to find a better one again.
        assert min(window) <= low <= min(v for t, v in seen[-36:])
        assert max(v for t, v in seen[-36:]) <= high <= max(max(window), 0)
        drawn.add(drawn_one)
    assert drawn == set(range(10))


def test_show_has_integers_in_full_and_no_variable_that_the_module_never_sets(
    tmp_path: Path,
) -> None:
    path = imported(plain(tmp_path))
    shown = CliRunner().invoke(app, ["cc", "show", str(path)]).output
    assert "keep = 512 (the module's own unit)" in shown
    assert "range -2147483648 to 2147483647;" in shown
    assert "inflight_longterm" not in shown
    assert "recorded (cc_samples): nothing of its own" in shown
    # Lines that go on are indented.
    shown = CliRunner().invoke(app, ["cc", "show", "bbr3"]).output
    assert "source: draft 2.5 StartupPacingGain; Linux\n        startup_pacing_gain" in shown
