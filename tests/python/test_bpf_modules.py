"""Congestion controls that a user wrote as eBPF programs, as the kernel's own bpf_cubic is: loaded
in the virtual machine's kernel as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm import VmEngine, hardware, image
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

needs_machine = pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
#: In the form of the kernel's tools/testing/selftests/bpf/progs; the types are those that it uses
#: of vmlinux.h.
PROGRAM = """
typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned int __u32;
typedef unsigned long long __u64; typedef int __s32; typedef long long __s64;
typedef __u16 __be16; typedef __u32 __be32; typedef __u32 __wsum;
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2 };
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock { int unused; };
struct inet_connection_sock { __u64 icsk_ca_priv[13]; };
struct tcp_sock { __u32 snd_cwnd; };
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
};
#pragma clang attribute pop
struct mine { __u32 reductions; __s32 negative; };

char LICENSE[] SEC("license") = "GPL";
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops")
void BPF_PROG(mine_init, struct sock *sk)
{
	struct mine *ca = (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;

	ca->reductions = 0;
	ca->negative = -7;
}
SEC("struct_ops")
__u32 BPF_PROG(mine_ssthresh, struct sock *sk)
{
	struct mine *ca = (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;

	ca->reductions++;
	return ((struct tcp_sock *)sk)->snd_cwnd - 1;
}
SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}
SEC("struct_ops")
__u32 BPF_PROG(mine_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}
SEC(".struct_ops.link")
struct tcp_congestion_ops mine = {
	.init = (void *)mine_init, .ssthresh = (void *)mine_ssthresh,
	.cong_avoid = (void *)mine_cong_avoid, .undo_cwnd = (void *)mine_undo, .name = "bpf_mine",
};
"""


def compiled(folder: Path, text: str = PROGRAM) -> Path:
    (folder / "bpf_mine.c").write_text(text)
    command = "clang -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -c bpf_mine.c -o bpf_mine.o"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder / "bpf_mine.o"


def run(module: Path, name: str = "bpf_mine") -> Any:
    path = {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"}
    flows = [{"cc": f"kernel:{name}"}]
    plan = resolve(make_scenario({"duration": "3s", "path": path, "flow": flows}))
    return VmEngine().run(plan, lambda _done: True, {"kernel": "6.12", "module": str(module)})


def test_an_object_of_struct_ops_is_taken_as_what_it_is(tmp_path: Path) -> None:
    module = compiled(tmp_path)
    assert image.own_module(module) == ("own_bpf_mine.bpf.o", module.read_bytes())
    other = PROGRAM[: PROGRAM.index('SEC("struct_ops")')]
    with pytest.raises(UserError, match=r"nor eBPF programs with a struct_ops"):
        image.own_module(compiled(tmp_path, other))


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_it_controls_a_flow_and_shows_its_fields(tmp_path: Path) -> None:
    result = run(compiled(tmp_path))
    (flow,) = result.tables["flows"].to_pylist()
    assert flow["bytes_delivered"] > 2_000_000
    last = result.tables["cc_samples"].to_pylist()[-1]
    assert last["negative"] == -7 and last["reductions"] > 0
    # A reduction by one packet leaves a window that never falls far below the queue's and path's.
    windows = [row["cwnd_packets"] for row in result.tables["flow_samples"].to_pylist()]
    assert min(windows[len(windows) // 2 :]) > 50


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_what_the_verifier_refuses_is_told_with_its_reason(tmp_path: Path) -> None:
    wrong = PROGRAM.replace("	ca->reductions = 0;", "	*(volatile int *)0 = 1;")
    with pytest.raises(RunError, match=r"the kernel refuses own_bpf_mine\.bpf\.o"):
        run(compiled(tmp_path, wrong))


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_a_name_that_nothing_registers_is_told_with_those_that_the_kernel_has(
    tmp_path: Path,
) -> None:
    said = r"congestion control other: the kernel has only reno, cubic, .*bpf_mine$"
    with pytest.raises(RunError, match=said):
        run(compiled(tmp_path), "other")
