"""Report pages, which are self-contained HTML: jinja2 templates that extend page.html."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jinja2

COLOURS = 8
"""The number of series that have distinct colours."""


def page(template: str, filters: dict[str, Callable[..., str]] | None = None, **values: Any) -> str:
    """Renders a template with `values`, which it escapes.

    Args:
      template: PACKAGE/FILE, such as `loadtest.report/page.html`.
      filters: further filters of the template.
      values: `title`, `machine`, `settings` (by name) and what the template needs.
    """
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(_read),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.globals["colours"] = COLOURS
    environment.filters.update(filters or {})
    style = _read("cli/page.css")
    usual = {"style": style, "heading": "How it was measured"}
    return environment.get_template(template).render(usual | values)


def _read(name: str) -> str:
    package, _, file = name.partition("/")
    return files(f"colcast.{package}").joinpath(file).read_text(encoding="utf-8")
