"""Congestion controls in this host's running kernel: loaded for any program, seen, taken away."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fullpipe import kernel
from fullpipe.congestion.registry import cc_sets
from fullpipe.kernel import Loaded
from kernel_host import PINS, available, fullpipe, loaded, program, why_not

__all__ = ["loaded"]

REASON = why_not()
pytestmark = [
    pytest.mark.live,
    pytest.mark.root,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
NOBODY = "65534"
Load = Callable[..., str]


def entry(name: str) -> Loaded | None:
    """What `list` says of one."""
    found = [item for item in kernel.list_loaded() if item.kernel_name == name]
    return found[0] if found else None


@pytest.mark.parametrize("cc", list(cc_sets()))
def test_every_set_loads_carries_a_transfer_and_goes_without_a_trace(cc: str, loaded: Load) -> None:
    name = loaded(cc)
    assert name in available()
    with program(name, 2_000_000) as user:
        assert user.transfer() == {"arrived": 2_000_000, "name": name}
    assert kernel.unload(name) == (name, 0)
    assert name not in available()
    assert not list(PINS.glob(f"{name}*"))


def test_the_commands_load_under_the_registrys_name_and_unload_by_the_sets() -> None:
    assert "fp_bbrnplus_run" not in available(), "unload it first: fullpipe kernel unload"
    done = fullpipe("kernel", "load", "bbrnplus-asrun", "--set", "smart_exit_count=4")
    assert done.returncode == 0, done.stderr
    assert "iperf3 -C fp_bbrnplus_run" in done.stderr
    with program("fp_bbrnplus_run", 10_000) as user:
        assert user.transfer()["name"] == "fp_bbrnplus_run"
    done = fullpipe("kernel", "unload", "bbrnplus-asrun")
    assert done.returncode == 0, done.stderr
    assert "fp_bbrnplus_run" not in available()


def test_list_shows_the_set_the_changed_constants_and_the_live_sockets(loaded: Load) -> None:
    name = loaded("bbr3", probe_up_gain=1.5, headroom=0)
    found = entry(name)
    assert found is not None
    assert (found.sockets, found.opened, found.is_registered) == (0, 0, True)
    assert found.base.name == "bbr3"
    assert found.changes == {"probe_up_gain": 1.5, "headroom": 0.0}
    with program(name, 1000), program(name, 1000):
        found = entry(name)
        assert found is not None
        assert (found.sockets, found.opened) == (2, 2)
    printed = fullpipe("kernel", "list")
    assert f"{name}" in printed.stdout
    assert "probe_up_gain=1.5" in printed.stdout
    as_json = {
        item["kernel_name"]: item
        for item in json.loads(fullpipe("kernel", "list", "--json").stdout)
    }
    assert as_json[name]["sockets"] == 0
    assert as_json[name]["constants"]["probe_up_gain"] == 1.5


def test_unload_leaves_a_living_socket_its_congestion_control(loaded: Load) -> None:
    name = loaded("bbr3")
    with program(name, 1_000_000) as user:
        user.transfer()
        done = fullpipe("kernel", "unload", name)
        assert done.returncode == 0
        assert "1 sockets keep it until they close" in done.stderr
        assert name not in available()
        assert user.transfer() == {"arrived": 1_000_000, "name": name}
        left = entry(name)
        assert left is not None
        assert (left.sockets, left.is_registered) == (1, False)
    assert entry(name) is None
    assert not list(PINS.glob(f"{name}*"))


def test_the_name_is_free_again_while_sockets_of_the_old_one_live(loaded: Load) -> None:
    name = loaded("bbr1")
    with program(name, 100_000) as old:
        kernel.unload(name)
        kernel.load(kernel.request("reno", kernel_name=name))
        with program(name, 100_000) as new:
            assert new.transfer()["arrived"] == 100_000
            assert old.transfer()["arrived"] == 100_000
            assert sorted(item.algorithm for item in kernel.list_loaded()
                          if item.kernel_name == name) == ["bbr1", "reno"]  # fmt: skip


def test_a_program_without_rights_may_choose_it(loaded: Load) -> None:
    name = loaded("bbr3")
    with program(name, 10_000, "--user", NOBODY) as user:
        assert user.transfer() == {"arrived": 10_000, "name": name}


def refuses(text: str, *arguments: str, inside: tuple[str, ...] = ()) -> None:
    """The command must say `text`, in one message, and exit with 2."""
    done = fullpipe(*arguments, inside=inside)
    assert text in done.stderr, done.stderr
    assert done.stderr.startswith("fullpipe: ")
    assert done.returncode == 2


@pytest.mark.slow
def test_what_is_asked_wrongly_is_refused_with_what_would_be_right(loaded: Load) -> None:
    refuses("unknown congestion control 'bbr4'; did you mean bbr", "kernel", "load", "bbr4")
    refuses("startup_pacing_gain", "kernel", "load", "bbr3", "--set", "gain=2")
    refuses("0 to 0.5 of packets", "kernel", "load", "bbr3", "--set", "loss_thresh=7")
    refuses("must be NAME=VALUE", "kernel", "load", "bbr3", "--set", "loss_thresh")
    refuses("must be 1 to 15 letters", "kernel", "load", "bbr3", "--name", "sixteen_letters_")
    refuses("must be 1 to 15 letters", "kernel", "load", "bbr3", "--name", "../x")
    refuses(
        "already has a congestion control named reno", "kernel", "load", "bbr3", "--name", "reno"
    )
    name = loaded("reno")
    refuses(f"already has a congestion control named {name}",
            "kernel", "load", "cubic", "--name", name)  # fmt: skip
    assert (entry(name) or pytest.fail("it is gone")).algorithm == "reno"
    refuses("fpt_nothing is not loaded", "kernel", "unload", "fpt_nothing")
    refuses("cubic is not loaded", "kernel", "unload", "kernel:cubic".removeprefix("kernel:"))


def test_without_rights_it_refuses(loaded: Load) -> None:
    name = loaded("reno")
    powerless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    for words in (("load", "cubic"), ("list",), ("unload", name)):
        refuses("run as root", "kernel", *words, inside=powerless)
    assert entry(name) is not None


def hidden(script: str) -> tuple[str, ...]:
    """A prefix that runs a command where `script` changed the mounts, for that command alone."""
    return ("unshare", "-m", "sh", "-ec", f'{script}; exec "$@"', "sh")


def test_a_kernel_without_btf_is_refused_with_the_reason() -> None:
    without = hidden("mount -t tmpfs none /sys/kernel/btf")
    refuses("no /sys/kernel/btf/vmlinux", "kernel", "load", "reno", inside=without)


def test_a_kernel_without_struct_ops_is_refused_with_the_reason(tmp_path: Path) -> None:
    strings = b"\0int\0"
    integer = struct.pack("<IIII", 1, 1 << 24, 4, 1 << 24 | 32)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(integer), len(integer), len(strings))
    (tmp_path / "btf").write_bytes(header + integer + strings)
    without = hidden(f"mount --bind {tmp_path / 'btf'} /sys/kernel/btf/vmlinux")
    refuses("no congestion control from eBPF", "kernel", "load", "reno", inside=without)


def test_a_host_without_the_bpf_file_system_is_refused_with_the_reason() -> None:
    name = kernel.own_name()
    without = hidden("mount -t tmpfs none /sys/fs")
    refuses("no bpf file system", "kernel", "load", "reno", "--name", name, inside=without)
    assert name not in available()


def test_what_is_the_hosts_default_is_not_unloaded(loaded: Load) -> None:
    name = loaded("reno")
    chosen = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    namespace = ("unshare", "-n", "sh", "-ec", f'echo {name} > {chosen}; exec "$@"', "sh")
    refuses("is this host's default", "kernel", "unload", name, inside=namespace)
    assert name in available()
