"""The page's templates. Must never know what a template says."""

from __future__ import annotations

import jinja2


def template(name: str) -> jinja2.Template:
    """A template of this package. All that it inserts is escaped."""
    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(default=True, default_for_string=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.PackageLoader("fullpipe.report", ""),
    )
    return environment.get_template(name)
