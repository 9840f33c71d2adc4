"""What a compiler's preprocessor makes of a user's file, held against the rules of refusals.py. The
compiler is then given this very text. Must never compile it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import refusals, toolchain
from fullpipe.congestion.userfiles.errors import explain_errors
from fullpipe.congestion.userfiles.source import Source, folder_of
from fullpipe.congestion.userfiles.tokens import Token, tokens_of

#: The largest text: bbr3's has 0.1 MiB, of eBPF's headers 0.5 MiB.
_MOST_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Preprocessed:
    """A checked translation unit: the file for the compiler, and its tokens."""

    file: Path
    tokens: Sequence[Token]
    source: Source

    def location_of(self, name: str) -> str | None:
        """`file:line` where a name stands first in the user's files."""
        user_folders = [folder_of(self.source.id) / "source"]
        is_own = _below(user_folders)
        user_tokens = [token for token in self.tokens if is_own(token.file)]
        location = refusals.location_of(user_tokens, name)
        return None if location is None else self.source.with_user_paths(location)


def preprocess(
    source: Source, command: Sequence[str], unit: Path, folder: Path, headers: Sequence[Path] = ()
) -> Preprocessed:
    """Runs a compiler's command on `unit`, a file of the contract that includes the source, and
    checks the result, which is kept in `folder`. `headers`: folders of headers that the command
    uses besides the contract's; what they say is not checked, nor what follows them in `unit`.

    Raises UserError with file and line for what an algorithm may not say."""
    file = folder / f"{source.name}.i"
    user_folder = folder_of(source.id) / "source"
    allowed = [user_folder, shipped("cc")]
    answer = toolchain.run(
        [*command, "-E", str(unit), "-o", str(file)],
        [*allowed, unit.parent, *headers],
        folder,
        source.path,
        output_bytes=_MOST_BYTES,
    )
    if answer.returncode != 0:
        words = source.with_user_paths(answer.stderr)
        raise UserError(explain_errors(source, words) or f"{source.path}: {words.strip()[-500:]}")
    tokens = tokens_of(file.read_text(encoding="utf-8", errors="replace"))
    trusted = [folder for folder in (unit.parent, *headers) if folder not in allowed]
    is_trusted = _below(trusted)
    try:
        refusals.check_files(tokens, _below([*allowed, *trusted]))
        checked = [token for token in tokens if not is_trusted(token.file)]
        refusals.check_tokens(checked, _below([shipped("cc")]), toolchain.INTEGERS_ONLY in command)
        refusals.check_recursion(checked)
    except UserError as error:
        raise UserError(source.with_user_paths(str(error))) from None
    return Preprocessed(file, checked, source)


def _below(folders: Sequence[Path]) -> Callable[[str], bool]:
    """Whether a file lies in one of these folders. Judged once for each: a file has many tokens."""

    @cache
    def is_below(name: str) -> bool:
        file = Path(os.path.normpath(name))
        return name.startswith("<") or any(file.is_relative_to(folder) for folder in folders)

    return is_below
