"""Checks by trial what the engines need from this machine, and says how to install it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fullpipe.base import installed
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import registry
from fullpipe.congestion.userfiles import toolchain
from fullpipe.engines import assets
from fullpipe.engines.vm import builders, hardware, kernels, uml_kernel
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

_INSTALL = "fullpipe doctor --install"
#: What installs QEMU, by the ID and ID_LIKE of /etc/os-release (os-release(5)).
_QEMU_COMMANDS = {
    "debian": "apt-get install -y -qq --no-install-recommends qemu-system-x86",
    "ubuntu": "apt-get install -y -qq --no-install-recommends qemu-system-x86",
    "fedora": "dnf install -y qemu-system-x86-core",
    "rhel": "dnf install -y qemu-kvm-core",
    "arch": "pacman -S --needed --noconfirm qemu-system-x86",
    "suse": "zypper --non-interactive install qemu-x86",
    "opensuse": "zypper --non-interactive install qemu-x86",
    "alpine": "apk add qemu-system-x86_64",
    "nixos": "nix-env -iA nixos.qemu",
    "gentoo": "emerge app-emulation/qemu",
    "void": "xbps-install -y qemu",
}
_INSTALL_SECONDS = 1200
#: Arguments of `tc qdisc add` -> the features that need it.
_QDISCS = {
    "htb": "engine live without --peer (the rate of paths)",
    "netem": "engine live without --peer (the delay of paths)",
    "bfifo": "engine live without --peer (drop-tail buffers)",
    **{row.tc or name: f"path.qdisc = {name}" for name, row in DISCIPLINES.items() if row.modules},
    "fq": "path.qdisc = fq; pacing by the qdisc",
}
_QDISC_REMEDY = {"dualpi2": "Linux 6.17 or later, built with it (Debian's lack it)"}
_PATH_QDISCS = ("htb", "netem", "bfifo")
#: A virtual environment's command, which root's PATH lacks.
_AS_ROOT = 'sudo "$(command -v fullpipe)" ...'


@dataclass(frozen=True)
class Check:
    """One requirement of an engine: what was found, which features need it, and what makes it
    available. `needed`: the engines that cannot run a common scenario without it."""

    name: str
    ok: bool
    detail: str
    lost: str = ""
    remedy: str = ""
    engines: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


def checks(engine: str | None = None) -> list[Check]:
    """The checks of one engine, or of all, in the order of installation."""
    results = [_sim(), _compiler()]
    if engine in (None, "vm", "live"):
        results += [_assets(), _ebpf_compiler()]
    if engine in (None, "vm"):
        results += [
            _qemu(),
            *(_kernel(version) for version in kernels.VERSIONS),
            _uml(),
            _builders(),
        ]
    if engine in (None, "live"):
        results += _live() if os.geteuid() == 0 else [_not_root()]
    return [check for check in results if engine is None or engine in check.engines]


def install(
    say: Callable[[str], None], kernel: str | None = None, source: Path | None = None
) -> None:
    """Builds what a checkout lacks for the kernel engines, installs QEMU where the user may, and
    downloads the kernels that are missing: all that have a name, or the one given. `source`: a
    folder with the files of Debian's packages, in place of the network. Raises UserError for an
    unknown kernel, RunError with the reason or with the command for an administrator."""
    wanted = [kernels.require(name) for name in ([kernel] if kernel else kernels.VERSIONS)]
    if source is not None and not source.is_dir():
        files = [file for row in wanted for file in row.packages]
        raise UserError(f"--from {source}: must be a folder with {', '.join(files)}")
    if (checkout := installed.checkout()) and not _assets().ok:
        say("building the agent and the eBPF objects (once, some two CPU minutes)")
        done = subprocess.run(
            ["make", "--no-print-directory", "assets"],
            cwd=checkout,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
        )
        if done.returncode != 0:
            raise RunError(f"make assets: {done.stderr.strip()}")
    # The kernels first: they need no rights.
    for name in [kernel] if kernel else kernels.VERSIONS:
        if kernels.cached(name) is None:
            try:
                kernels.fetch(name, say, source)
            except RunError as error:
                if name in (kernel, kernels.DEFAULT):
                    raise
                say(f"continued without it: {error}")
    if not hardware.is_there():
        _install_qemu(say)


def qemu_command() -> str | None:
    """What installs QEMU on this host's distribution; None if it is not in our table."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    # openSUSE's IDs go on, as in opensuse-tumbleweed.
    names += [name.split("-")[0] for name in names]
    return next((_QEMU_COMMANDS[name] for name in names if name in _QEMU_COMMANDS), None)


def _install_qemu(say: Callable[[str], None]) -> None:
    command = qemu_command()
    if command is None:
        raise RunError(
            f"{hardware.PROGRAM} is missing; install QEMU for x86 with your distribution's tool"
        )
    if os.geteuid() != 0 or not command.startswith("apt-get") or not shutil.which("apt-get"):
        raise RunError(f"{hardware.PROGRAM} is missing; as root: {command}")
    say("installing QEMU")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in ("apt-get -qq update", command):
        done = subprocess.run(
            step.split(), env=environment, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
        if done.returncode != 0:
            raise RunError(f"{step}: {done.stderr.strip()}")


def build_uml(version: str | None, say: Callable[[str], None]) -> None:
    """Builds the kernel of that version, by default the default one, for User Mode Linux. Raises
    UserError if there is no such version or a program is missing, RunError if a step fails."""
    if version is not None and version not in kernels.VERSIONS:
        raise UserError(f"--kernel {version}: must be one of {', '.join(kernels.VERSIONS)}")
    made = uml_kernel.build(version or kernels.DEFAULT, say)
    say(f"built {made.release} for --machine uml")


def _sim() -> Check:
    sets = len(registry.cc_sets())
    return Check(
        "sim", True, f"{sets} congestion controls compiled in", engines=("sim",), needed=("sim",)
    )


def _compiler() -> Check:
    works = _compiles([os.environ.get("CC", "cc")], "int main(void) { return 0; }")
    return Check(
        "sim: C compiler",
        works,
        detail="compiles" if works else "none that compiles and links",
        lost="congestion controls in a file",
        remedy="apt-get install gcc libc6-dev (as root)",
        engines=("sim",),
    )


def _ebpf_compiler() -> Check:
    headers = f"-I/usr/include/{platform.machine()}-linux-gnu"
    command = [os.environ.get("CLANG", "clang"), "-target", "bpf", "-g", "-O2", headers, "-c"]
    program = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nint answer;\n"
    works = _compiles(command, program)
    return Check(
        "vm, live: clang",
        works,
        detail="compiles for eBPF" if works else "none that compiles for eBPF",
        lost="congestion controls in a file, in a kernel",
        remedy="apt-get install clang libbpf-dev (as root)",
        engines=("vm", "live"),
    )


def _compiles(command: list[str], program: str) -> bool:
    """Whether a compiler is installed and makes an object of the program."""
    with toolchain.workplace() as folder:
        (folder / "program.c").write_text(program, encoding="utf-8")
        words = [*command, "program.c", "-o", "program"]
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0


def _assets() -> Check:
    engines = ("vm", "live")
    name, lost = "vm, live: agent", "engines vm and live, kernel load"
    try:
        names = [assets.agent().name, *(p.name for p in assets.objects_folder().glob("*.bpf.o"))]
        assets.turnstile()
    except UserError as error:
        return Check(name, False, str(error), lost, _INSTALL, engines, engines)
    return Check(name, True, ", ".join(sorted(names)), lost, "", engines, engines)


def _qemu() -> Check:
    version = hardware.version()
    return Check(
        "vm: QEMU",
        version is not None,
        detail=version or "not installed",
        lost="engine vm",
        remedy=f"{qemu_command()} (as root)"
        if qemu_command()
        else "your distribution's QEMU for x86",
        engines=("vm",),
        needed=("vm",),
    )


def _kernel(version: str) -> Check:
    kernel = kernels.cached(version)
    option = "" if version == kernels.DEFAULT else f" with --kernel {version}"
    return Check(
        f"vm: kernel {version}",
        kernel is not None,
        detail=kernel.release if kernel else "not downloaded",
        lost=f"engine vm{option}",
        remedy=_INSTALL,
        engines=("vm",),
        needed=() if option else ("vm",),
    )


def _uml() -> Check:
    built, outdated = uml_kernel.versions(), uml_kernel.outdated()
    works = bool(built) and not outdated
    missing = [] if works else builders.missing_packages(types=False)
    detail = ", ".join([*built, *(f"{version} is {uml_kernel.OUTDATED}" for version in outdated)])
    detail = detail or "not built"
    remedy = " and ".join(map(uml_kernel.command, outdated or [kernels.DEFAULT]))
    if missing:
        detail += f"; building lacks {', '.join(missing)}"
        remedy = f"{builders.install_command(missing)} (as root), then {remedy}"
    return Check("vm: User Mode Linux", works, detail, "--machine uml", remedy, ("vm",))


def _builders() -> Check:
    missing = builders.missing_packages()
    return Check(
        "vm: building",
        not missing,
        detail=f"lacks {', '.join(missing)}" if missing else "all it takes",
        lost="scripts/build_kernel.py (DualPI2, kernels of one's own)",
        remedy=builders.install_command(missing) + " (as root)" if missing else "",
        engines=("vm",),
    )


def _not_root() -> Check:
    """Nothing of the engine can be tried."""
    return Check(
        "live", False, "needs root", "engine live, kernel load", _AS_ROOT, ("live",), ("live",)
    )


def _live() -> list[Check]:
    return [_namespaces(), *(_qdisc(kind, lost) for kind, lost in _QDISCS.items()), _struct_ops()]


def _namespaces() -> Check:
    why = _refused("true")
    return Check(
        "live: namespaces",
        not why,
        detail=why or "made one",
        lost="engine live without --peer, kernel load",
        remedy="root outside a container, or one with CAP_SYS_ADMIN",
        engines=("live",),
        needed=("live",),
    )


def _qdisc(kind: str, lost: str) -> Check:
    why = _refused(f"tc qdisc add dev lo root {kind}")
    name = kind.split()[0]
    return Check(
        f"live: {name}",
        not why,
        detail=why or "made one",
        lost=lost,
        remedy=_QDISC_REMEDY.get(name, f"a kernel with sch_{name} (Debian's have it)"),
        engines=("live",),
        needed=("live",) if name in _PATH_QDISCS else (),
    )


def _refused(command: str) -> str:
    """Why a command fails in a network namespace of its own; empty if it works."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", command], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("Error:")] or lines[-1:]
    return errors[0].removeprefix("Error: ") if errors else f"exit status {done.returncode}"


def _struct_ops() -> Check:
    name, lost = "live: eBPF", "our congestion controls on this host; kernel:... still run"
    remedy = "a kernel with DEBUG_INFO_BTF and BPF_JIT, 6.1 or later"
    why = ""
    if not Path("/sys/kernel/btf/vmlinux").exists():
        why = "this kernel has no BTF"
    else:
        from fullpipe import kernel  # it imports the engines' assets

        try:
            kernel.load_and_unload("reno")
        except (UserError, RunError) as error:
            why = str(error)
    detail = why or f"loaded reno into {os.uname().release}, and unloaded it"
    return Check(name, not why, detail, lost, remedy, ("live",), ("live",))
