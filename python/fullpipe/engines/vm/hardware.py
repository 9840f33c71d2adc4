"""The hardware of a virtual machine as QEMU's arguments. The guest can see all of it, so a snapshot
(snapshot.py) fits exactly this hardware. It knows nothing of plans.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAM = "qemu-system-x86_64"
#: Files in a machine's folder: the shared memory, the kernel's console.
SHARED, CONSOLE = "shared", "console"

#: No random bits from the host, no clock of the host, no device that the run does not need. Newer
#: machine types than this one pass a random seed to the guest.
_OPTIONS = (
    "-nodefaults",
    "-no-user-config",
    "-display none",
    "-no-reboot",
    "-accel tcg,thread=single",
    "-icount shift=0,sleep=off",
    "-cpu max,-rdrand,-rdseed",
    "-smp 1",
    "-rtc base=2020-01-01T00:00:00,clock=vm",
    "-seed 1",
    "-name fullpipe,debug-threads=on",
    # A restored machine runs at once, although it was paused when it was saved.
    "-global migration.store-global-state=off",
)
_ARGUMENTS = tuple(word for option in _OPTIONS for word in option.split())
_MACHINE = "pc-i440fx-7.1,memory-backend=ram"
#: Every failure ends the machine, and nothing is random. Hardening, which costs instructions, and
#: boot-time tests of unused features are off.
_KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=4 panic=-1 oops=panic softlockup_panic=1 reboot=t "
    "nokaslr random.trust_cpu=off tsc=reliable clocksource=tsc "
    "mitigations=off init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off lsm= "
    "psi=0 nolapic "  # unread accounting; half of the boot time
    "cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list"
)


@dataclass(frozen=True)
class Hardware:
    """The hardware of a machine."""

    #: The unpacked kernel, or a self-extracting image; this and the next are absolute paths.
    kernel: Path
    initramfs: Path
    memory_mib: int
    #: Size of the shared memory; a power of two, because it is a PCI device.
    shared_bytes: int

    def arguments(self, memory: str) -> list[str]:
        """QEMU's command, for a folder that has the shared memory. `memory`: the backend of the
        guest's memory, without name and size."""
        return [
            PROGRAM,
            *_ARGUMENTS,
            "-machine",
            _MACHINE,
            "-object",
            f"{memory},id=ram,size={self.memory_mib}M",
            "-m",
            f"{self.memory_mib}M",
            "-kernel",
            str(self.kernel),
            "-initrd",
            str(self.initramfs),
            "-append",
            _KERNEL_ARGUMENTS,
            "-object",
            f"memory-backend-file,id=shared,share=on,size={self.shared_bytes},mem-path={SHARED}",
            # A device with peers cannot be migrated; this one has none.
            "-device",
            "ivshmem-plain,memdev=shared,master=on",
            "-chardev",
            f"file,id=console,path={CONSOLE}",
            "-serial",
            "chardev:console",
        ]


def memory_mib(least: int) -> int:
    """The memory of a machine that needs at least so much: a power of two, or 1.5 times one, so
    that most runs have the same hardware."""
    size = 1 << (least - 1).bit_length()
    return size * 3 // 4 if size * 3 // 4 >= least else size


def is_there() -> bool:
    """Whether QEMU is installed."""
    return shutil.which(PROGRAM) is not None


def version() -> str | None:
    """QEMU's version; None if it is not installed."""
    program = shutil.which(PROGRAM)
    return None if program is None else _version_of(program)


@cache
def _version_of(program: str) -> str | None:
    """Cached, because a call costs 0.02 CPU seconds. A running machine reports it (qmp.py)."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    words = answer.stdout.split()
    return words[3] if len(words) > 3 else None
