"""The page's templates, compiled once for each installation: that takes longer than a page.

Must never know what a template says.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

from fullpipe import __version__
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import UserError
from fullpipe.base.writing import aside


class _Compiled(BytecodeCache):
    """Files in the user's cache, one for each template as it stands, Jinja and Python (a file says
    itself which Python made it). Where none can be kept, templates are compiled anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fills the bucket where there is a file for it."""
        # Whatever a damaged file raises: the template is compiled then.
        with suppress(Exception), self._file(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps what the bucket has."""
        with suppress(OSError, UserError), aside(self._file(bucket)) as partial:
            partial.write_bytes(bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> Path:
        what = f"{__version__} {jinja2.__version__} {sys.version} {bucket.key} {bucket.checksum}"
        return self._folder / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.jinja"


def template(name: str) -> jinja2.Template:
    """A template of this package."""
    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(default=True, default_for_string=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.PackageLoader("fullpipe.report", ""),
    )
    with suppress(RuntimeError):  # who has no home has no cache
        environment.bytecode_cache = _Compiled(user_cache() / "templates")
    return environment.get_template(name)
