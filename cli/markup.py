"""Building blocks of report pages, which are self-contained HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

COLOURS = 8
"""The number of series that have distinct colours."""


def document(
    title: str,
    machine: str,
    parts: Iterable[str],
    settings: Mapping[str, str],
    heading: str = "How it was measured",
) -> str:
    """A complete page.

    Args:
      title: plain text.
      machine: the machine that was measured.
      parts: HTML blocks, in order from the top.
      settings: the settings of the measurement, by name.
      heading: the heading above the settings.
    """
    style = files("colcast.cli").joinpath("page.css").read_text()
    lines = "\n".join(parts)
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in settings.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="soft">{escape(machine)}</p>
{lines}
<h2>{escape(heading)}</h2>
<dl>{items}</dl>
</body>
</html>
"""


def paragraphs(kind: str, texts: Iterable[str]) -> str:
    """One paragraph of CSS class `kind` for each text."""
    return "".join(f'<p class="{kind}">{escape(text)}</p>' for text in texts)


def verdicts(found: Sequence[Mapping[str, Any]]) -> str:
    """One line per threshold and series; missed thresholds are red."""
    lines = [
        f'<li class="{"" if one["passed"] else "problem"}">{escape(one["series"])}: '
        f"{escape(one['threshold'])}: {'passed' if one['passed'] else 'failed'}, "
        f"{escape(one['measured'])}</li>"
        for one in found
    ]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, named: bool = False) -> str:
    """A table of HTML cells; left-aligns the first column and, with `named`, the second."""
    head = "".join(f"<th>{text}</th>" for text in heads)
    lines = ("".join(f"<td>{cell}</td>" for cell in cells) for cells in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="wide"><table class="{"named" if named else ""}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def chip(place: int) -> str:
    """A swatch in the colour of a series."""
    return f'<i class="chip s{place % COLOURS}"></i>'


def legend(labels: Sequence[str]) -> str:
    chips = "".join(f"<span>{chip(n)}{escape(label)}</span>" for n, label in enumerate(labels))
    return f'<p class="legend">{chips}</p>'


def charts(figures: Iterable[str]) -> str:
    """Figures side by side, as many as fit."""
    return f'<div class="charts">\n{"".join(figures)}\n</div>'


def figure(title: str, explanation: str, chart: str) -> str:
    return f"<figure><h2>{escape(title)}</h2><p>{escape(explanation)}</p>{chart}</figure>"
