"""The one way to make an environment of HTML templates. Must never know what a template says."""

from __future__ import annotations

import jinja2


def environment(*packages: str) -> jinja2.Environment:
    """An environment for the templates that lie in these packages, the first before the others. All
    that they insert is escaped, and a name that is not given is an error."""
    return jinja2.Environment(
        autoescape=jinja2.select_autoescape(default=True, default_for_string=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "") for name in packages]),
    )
