"""Plays scripts to a kernel in the virtual machine, all of them in one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.differential.subjects import QUEUES, TCP, Played
from fullpipe.engines.vm import hardware, image, kernels, machine, shared, vmlinux
from fullpipe.engines.vm.hardware import Hardware
from fullpipe.engines.vm.shared import Job
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

_MEMORY_MIB = 512
#: Bytes of an answer, for each byte of its script; a script's packets and fields are its answer.
_ANSWER_BYTES = 40
_SPARE_BYTES = 4 << 20

#: Kernels of the virtual machine -> whose rules the model has that is compared with each.
MODELS = {"6.1": "6.1", "6.12": "6.12.117", "7.3": "7.3"}


def queues(kernel_name: str) -> tuple[str, ...]:
    """The queue disciplines of a kernel that scripts can be drawn for. Raises UserError if the
    kernel is missing."""
    kernel = kernels.find(kernel_name, None)
    files = image.module_files(kernel)

    def has(name: str) -> bool:
        try:
            image.needed(DISCIPLINES[name].modules, kernel, files)
        except UserError:
            return False
        return True

    return tuple(filter(has, QUEUES))


def answers(
    scripts: Sequence[str],
    kernel_name: str,
    progress: Callable[[int], None] = lambda _: None,
    subject: Played = TCP,
) -> tuple[list[str], str]:
    """The kernel's answers, and its release. Raises UserError if the machine or the kernel is
    missing, RunError if the machine fails."""
    if not hardware.is_there():
        raise UserError(f"the differential test needs {hardware.PROGRAM}")
    kernel = kernels.find(kernel_name, None)
    files = image.module_files(kernel)
    documents = list(map(json.loads, scripts))
    modules = image.needed(subject.modules(documents), kernel, files)
    job = Job(None, modules, {}, {subject.job_key: documents})
    stream_bytes = _ANSWER_BYTES * sum(map(len, scripts)) + _SPARE_BYTES
    built = Hardware(
        vmlinux.unpacked(kernel.image, user_cache() / "vmlinux").resolve(),
        image.build(kernel, files, user_cache() / "initramfs").resolve(),
        _MEMORY_MIB,
        shared.size_bytes(job, stream_bytes >> 20),
    )

    def tell(done: int) -> bool:
        progress(done)
        return True

    ended = machine.run(built, job, tell)
    received = _native.stream.decode(ended.stream)
    answered: list[str] = received["answers"]
    if received["failure"] or not received["complete"]:
        words = " | ".join(line.strip() for line in ended.console if line.strip())
        where = f"after {len(answered)} of {len(scripts)} scripts"
        raise RunError(f"{where}: {received['failure'] or 'the machine died'}; {words}")
    return answered, str(dict(received["facts"])["kernel"])
