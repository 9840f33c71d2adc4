"""What a virtual machine is made of: QEMU's arguments. Whatever is said here the guest can see, so
a machine that is kept (snapshot.py) is one of exactly this hardware. It knows nothing of plans.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAM = "qemu-system-x86_64"
#: Files in the folder of a machine: the memory that it shares, the kernel's words.
SHARED, CONSOLE = "shared", "console"

#: No random bits from the host, no clock of the host, no device that the run does not need. The
#: machine type is of a time when QEMU did not yet hand a random seed to the guest.
_ARGUMENTS = (
    "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
    "-accel", "tcg,thread=single",
    "-icount", "shift=0,sleep=off",
    "-cpu", "max,-rdrand,-rdseed",
    "-smp", "1",
    "-rtc", "base=2020-01-01T00:00:00,clock=vm",
    "-seed", "1",
    "-name", "fullpipe,debug-threads=on",
    # A machine that was kept runs as soon as it is there, although it was paused to be kept.
    "-global", "migration.store-global-state=off",
)  # fmt: skip
_MACHINE = "pc-i440fx-7.1,memory-backend=ram"
#: Every failure ends the machine; nothing is random; what costs instructions for the safety of a
#: machine with users, or tests at boot what the run does not use, is off.
_KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=4 panic=-1 oops=panic softlockup_panic=1 reboot=t "
    "nokaslr random.trust_cpu=off tsc=reliable clocksource=tsc "
    "mitigations=off init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off lsm= "
    "psi=0 nolapic "  # accounting that nobody reads; half of the time that booting takes
    "cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list"
)


@dataclass(frozen=True)
class Hardware:
    """A machine before it is switched on."""

    #: The unpacked kernel, or an image that unpacks itself; this and the next as absolute paths.
    kernel: Path
    initramfs: Path
    memory_mib: int
    #: Of the memory that host and guest share; a power of two, as a PCI device wants it.
    shared_bytes: int

    def arguments(self, memory: str) -> list[str]:
        """QEMU's command, for a folder that has the shared memory. `memory`: the backend of the
        guest's memory, without name and size."""
        return [
            PROGRAM, *_ARGUMENTS,
            "-machine", _MACHINE,
            "-object", f"{memory},id=ram,size={self.memory_mib}M",
            "-m", f"{self.memory_mib}M",
            "-kernel", str(self.kernel),
            "-initrd", str(self.initramfs),
            "-append", _KERNEL_ARGUMENTS,
            "-object", f"memory-backend-file,id=shared,share=on,size={self.shared_bytes},"
            f"mem-path={SHARED}",
            # A machine with a peer cannot be kept; this one has none.
            "-device", "ivshmem-plain,memdev=shared,master=on",
            "-chardev", f"file,id=console,path={CONSOLE}",
            "-serial", "chardev:console",
        ]  # fmt: skip


def memory_mib(least: int) -> int:
    """Of a machine that needs so much: a power of two or one and a half, so that most runs have
    the same hardware."""
    size = 1 << (least - 1).bit_length()
    return size * 3 // 4 if size * 3 // 4 >= least else size


def is_there() -> bool:
    """Whether QEMU is installed."""
    return shutil.which(PROGRAM) is not None


def version() -> str | None:
    """QEMU's version; None where it is not installed."""
    program = shutil.which(PROGRAM)
    return None if program is None else _version_of(program)


@cache
def _version_of(program: str) -> str | None:
    """Asking costs 0.02 CPU seconds; a machine that is kept says it itself (qmp.py)."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    words = answer.stdout.split()
    return words[3] if len(words) > 3 else None
