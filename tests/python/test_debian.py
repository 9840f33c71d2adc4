"""Packages of Debian's: from a server on loopback that stands for the archive, or from a folder;
and the table of what is pinned.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fullpipe import doctor
from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm import debian, kernels

FILE = "linux-image-1.2.3_1.2.3-1_amd64.deb"
PATH = f"pool/main/l/linux/{FILE}"


def deb(files: dict[str, bytes]) -> bytes:
    """A package as deb(5) describes it: an ar archive of two tar archives and a version."""

    def tar(files: dict[str, bytes]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            link = tarfile.TarInfo("./lib/modules/1.2.3/build")
            link.type, link.linkname = tarfile.SYMTYPE, "/usr/src/linux"
            archive.addfile(link)
        return packed.getvalue()

    def member(name: str, content: bytes) -> bytes:
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        return head + content + b"\n" * (len(content) % 2)

    parts = {"debian-binary": b"2.0\n", "control.tar.xz": tar({}), "data.tar.xz": tar(files)}
    return b"!<arch>\n" + b"".join(member(name, content) for name, content in parts.items())


PACKAGE = deb({"./boot/vmlinuz-1.2.3": b"kernel"})


class Server:
    """Answers requests for the paths in `files`, and counts them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A mirror, and below `/snapshot` the snapshot archive. One package is pinned."""
    package = debian.Package(
        FILE, "debian", PATH, len(PACKAGE), hashlib.sha256(PACKAGE).hexdigest(),
        hashlib.sha1(PACKAGE).hexdigest(),
    )  # fmt: skip
    made = Server()
    monkeypatch.setenv(debian.MIRROR_VARIABLE, made.address)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(debian, "_SNAPSHOT", f"{made.address}/snapshot")
    monkeypatch.setattr(debian, "_packages", lambda: {FILE: package})
    yield made
    made.close()


def quiet(_: str) -> None:
    pass


def test_a_package_comes_from_the_mirror_and_is_unpacked(server: Server, tmp_path: Path) -> None:
    server.files[f"/debian/{PATH}"] = PACKAGE
    said: list[str] = []
    debian.unpack([FILE], tmp_path, said.append)
    assert (tmp_path / "boot/vmlinuz-1.2.3").read_bytes() == b"kernel"
    assert (tmp_path / "lib/modules/1.2.3/build").is_symlink()
    assert said == [f"downloading {FILE} (0 MB)"]


def test_a_package_that_the_archive_replaced_comes_from_the_snapshots(
    server: Server, tmp_path: Path
) -> None:
    server.files[f"/snapshot/{hashlib.sha1(PACKAGE).hexdigest()}"] = PACKAGE
    debian.unpack([FILE], tmp_path, quiet)
    assert (tmp_path / "boot/vmlinuz-1.2.3").is_file()
    assert server.asked[0] == f"/debian/{PATH}"


@pytest.mark.parametrize(
    "content",
    [PACKAGE[:-1], PACKAGE + b"x" * 5_000_000, PACKAGE.replace(b"2.0", b"2.1"), b""],
    ids=["too short", "too long", "changed", "empty"],
)
def test_another_file_is_refused_wherever_it_comes_from(
    server: Server, tmp_path: Path, content: bytes
) -> None:
    server.files[f"/debian/{PATH}"] = content
    server.files[f"/snapshot/{hashlib.sha1(PACKAGE).hexdigest()}"] = content
    with pytest.raises(RunError, match="could not be downloaded") as error:
        debian.unpack([FILE], tmp_path / "into", quiet)
    assert str(error.value).count("is not the package that is pinned") == 2
    assert "--from DIR" in str(error.value) and debian.MIRROR_VARIABLE in str(error.value)
    assert not (tmp_path / "into").exists()
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(RunError, match=f"must be the file of .*{PATH}"):
        debian.unpack([FILE], tmp_path / "into", quiet, tmp_path)


def test_a_proxy_of_the_environment_is_asked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://debian.invalid")
    monkeypatch.setenv("http_proxy", server.address)
    server.files[f"http://debian.invalid/debian/{PATH}"] = PACKAGE
    debian.unpack([FILE], tmp_path, quiet)
    assert server.asked == [f"http://debian.invalid/debian/{PATH}"]


def test_without_a_network_a_folder_brings_the_packages(server: Server, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(PACKAGE)
    debian.unpack([FILE], tmp_path / "into", quiet, tmp_path)
    assert (tmp_path / "into/boot/vmlinuz-1.2.3").is_file()
    assert server.asked == []


def test_every_file_of_the_table_is_pinned_by_its_content() -> None:
    table = debian.table()
    packages = {row["file"]: row for row in table["package"]}
    for row in [*table["kernel"], *table["source"]]:
        for file in [*row["packages"], *row.get("headers", [])]:
            assert len(packages[file]["sha256"]) == 64 and len(packages[file]["sha1"]) == 40
            assert packages[file]["path"].endswith(f"/{file}")
    for name, release in kernels.VERSIONS.items():
        pinned = kernels.pinned(name)
        assert pinned is not None and pinned.release == release
        assert pinned.version.startswith(f"{name}.")


def test_an_exact_version_is_a_kernel_of_its_own() -> None:
    versions = [row["version"] for row in debian.table()["kernel"] if row["version"] != "6.12"]
    older = next(v for v in versions if v.startswith("6.12.") and v != versions[0])
    pinned = kernels.pinned(older)
    assert pinned is not None and pinned.version == older
    if kernels.cached(older) is None:
        with pytest.raises(UserError, match=f"`fullpipe doctor --install --kernel {older}`"):
            kernels.find(older, None)
    with pytest.raises(UserError, match=r"--kernel 5\.4: must be 6\.12, 6\.1, 7\.3 or one of"):
        kernels.fetch("5.4", quiet)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("ID=debian\n", "apt-get install"),
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get install"),
        ("ID=fedora\n", "dnf install"),
        ('ID=rocky\nID_LIKE="rhel centos fedora"\n', "dnf install"),
        ("ID=arch\n", "pacman -S"),
        ('ID=opensuse-tumbleweed\nID_LIKE="opensuse suse"\n', "zypper"),
        ("ID=alpine\n", "apk add"),
        ("ID=nixos\n", "nix-env"),
    ],
)
def test_qemu_is_named_with_the_command_of_the_distribution(
    monkeypatch: pytest.MonkeyPatch, text: str, command: str
) -> None:
    lines = (line.split("=", 1) for line in text.splitlines())
    release = {key: value.strip('"') for key, value in lines}
    monkeypatch.setattr(doctor.platform, "freedesktop_os_release", lambda: release)
    assert (doctor.qemu_command() or "").startswith(command)


def test_an_unknown_distribution_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.platform, "freedesktop_os_release", lambda: {"ID": "own"})
    monkeypatch.setattr(doctor.kernels, "cached", lambda _: True)
    monkeypatch.setattr(doctor.hardware, "is_there", lambda: False)
    monkeypatch.setattr(doctor.installed, "checkout", lambda: None)
    with pytest.raises(RunError, match="qemu-system-x86_64 is missing; install QEMU for x86"):
        doctor.install(quiet)


def test_a_missing_folder_of_packages_is_named_with_the_files_to_put_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must be a folder with linux-image-6\.12"):
        doctor.install(quiet, source=tmp_path / "nowhere")
