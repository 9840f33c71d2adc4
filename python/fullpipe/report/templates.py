"""The page's templates. Must never know what a template says."""

from __future__ import annotations

import jinja2

from fullpipe.base.templates import environment


def template(name: str) -> jinja2.Template:
    """A template of this package."""
    return environment("fullpipe.report", "fullpipe.plots").get_template(name)
