"""Checksums of files: a bit that a disk turned is found, and never read as a result.

`checksums.json` lists the files of a folder that is written once; `NAME.checksums.json` those
called `NAME.*`, which are replaced one by one. They find damage, not forgery: who changes a file
can change its checksum. Files of earlier programs have none and are taken as they are. Knows no
content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fullpipe.base.supplied import open_regular, read_regular

FILE = "checksums.json"
#: Of the files beside tables. The plan of 100,000 flows (MAX_FLOWS) takes 81 MB in metadata.json.
_MOST_TEXT_BYTES = 512 << 20
_SEAL = "sha256"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class DamagedError(ValueError):
    """A file that is not as it was written. `file`: which one."""

    def __init__(self, file: Path, reason: str = "its content is not what was written") -> None:
        super().__init__(reason)
        self.file = file


def seal(folder: Path, names: Iterable[str]) -> None:
    """Writes the checksums of these files of a folder. Raises OSError."""
    listed = {name: [sha256_of(folder / name)] for name in sorted(names)}
    (folder / FILE).write_text(_text(listed), encoding="utf-8")


def verify(file: Path) -> None:
    """Raises DamagedError if the file, or the list with its checksum, is damaged; OSError if it
    cannot be read."""
    for manifest in (file.parent / FILE, manifest_of(file)):
        listed = _listed(manifest)
        while file.name in listed and sha256_of(file) not in listed[file.name]:
            again = _listed(manifest)
            if again == listed:
                raise DamagedError(file)
            listed = again  # another program has just replaced the file


def listed_names(manifest: Path) -> set[str]:
    """The names in a list of checksums; none where it is missing. Raises DamagedError if it is
    damaged."""
    return set(_listed(manifest))


def manifest_of(file: Path) -> Path:
    """The list of the files that share this one's name and are replaced one by one."""
    return file.with_name(f"{file.name.partition('.')[0]}.{FILE}")


def announced(file: Path, content: Path) -> str:
    """The list for `manifest_of` after `content` replaces the file. Until then it fits both."""
    digests = [sha256_of(content)]
    try:
        listed = _listed(manifest_of(file))
    except DamagedError:
        listed = {}
    if file.exists():
        now = sha256_of(file)
        if now in listed.get(file.name, [now]):
            digests.append(now)
    return _text({**listed, file.name: digests})


def sealed(document: Mapping[str, Any]) -> str:
    """A small JSON document with a checksum of itself, as text."""
    return json.dumps({**document, _SEAL: _digest(document)}, sort_keys=True, allow_nan=False)


def unsealed(file: Path, text: str) -> dict[str, Any]:
    """The document of `sealed`; one without a checksum as it is. Raises DamagedError otherwise."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(file, f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DamagedError(file)
    if _SEAL not in document:
        if any(isinstance(value, str) and _DIGEST.fullmatch(value) for value in document.values()):
            raise DamagedError(file)  # the name of its checksum is damaged
        return document
    content = {name: value for name, value in document.items() if name != _SEAL}
    if document[_SEAL] != _digest(content) or text.strip("\n") != sealed(content):
        raise DamagedError(file)
    return content


def read_text(file: Path) -> str:
    """The text of a file beside tables. Raises OSError if it cannot be read, UnicodeDecodeError."""
    return read_regular(file, _MOST_TEXT_BYTES).decode()


def sha256_of(file: Path) -> str:
    """A file's SHA-256 in hexadecimal. Raises OSError if it cannot be read."""
    with open_regular(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _listed(manifest: Path) -> dict[str, list[str]]:
    """Name -> checksums; empty if there is no list."""
    try:
        text = read_text(manifest)
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise DamagedError(manifest) from None
    listed = unsealed(manifest, text).get("files")
    if text != _text(listed if isinstance(listed, dict) else {}):
        raise DamagedError(manifest)
    listed_names: dict[str, list[str]] = listed or {}
    return listed_names


def _text(listed: Mapping[str, list[str]]) -> str:
    return sealed({"files": dict(listed)}) + "\n"


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
