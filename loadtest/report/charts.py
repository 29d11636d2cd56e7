"""Charts as SVG text, drawn by matplotlib: self-contained and scalable.

Colours are CSS variables of the page that contains a chart (page.css), so one drawing works on
light and dark pages.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

Point = tuple[float, float]

_WIDTH, _HEIGHT = 5.2, 2.9  # inches
_INK, _SOFT, _RULE, _BAD = "#1d2330", "#5c6577", "#d9dde5", "#b91c1c"
_SERIES = ("#3867c7", "#d97706", "#0f8f6f", "#b4307a", "#6b6fd6", "#7a7f1d", "#00809b", "#a34a28")
_VARIABLES = {_INK: "ink", _SOFT: "soft", _RULE: "rule", _BAD: "bad"} | {
    colour: f"s{number}" for number, colour in enumerate(_SERIES)
}
_STYLE: Any = {
    "svg.fonttype": "none",  # keep text as text, not as paths
    "svg.hashsalt": "colcast",  # equal drawings have equal bytes
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "lines.linewidth": 1.8,
}


@dataclass(frozen=True)
class Line:
    """Points joined by a line; `series` decides the colour, and non-finite points leave gaps."""

    label: str
    series: int
    points: Sequence[Point]
    dots: bool = True


@dataclass(frozen=True)
class Bar:
    """A horizontal bar and the text after it."""

    label: str
    series: int
    value: float
    text: str


def line_chart(
    lines: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    x_ticks: Sequence[tuple[float, str]] = (),
    limit: tuple[float, str] | None = None,
) -> str:
    """Draws lines on a common pair of axes; the vertical axis starts at zero.

    Args:
      lines: the lines to draw.
      x_title: the axis title, with the unit.
      y_title: the axis title, with the unit.
      x_ticks: positions and labels; by default round numbers from zero.
      limit: the height and label of a dashed line.
    """
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(x_title, y_title)
        for line in lines:
            x, y = zip(*line.points, strict=True) if line.points else ((), ())
            marker = "o" if line.dots else ""
            axes.plot(x, y, color=_SERIES[line.series], marker=marker, markersize=4, gid=line.label)
        if limit:
            axes.axhline(limit[0], color=_BAD, linestyle="--", linewidth=1, gid="limit")
            axes.annotate(
                limit[1], (0.01, limit[0]), (0, 4), color=_BAD,
                xycoords=("axes fraction", "data"), textcoords="offset points",
            )  # fmt: skip
        if x_ticks:
            axes.set_xticks(*zip(*x_ticks, strict=True))
        else:
            axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        return _svg(figure, f"{y_title} over {x_title}")


def bar_chart(bars: Sequence[Bar], title: str) -> str:
    """Draws horizontal bars from zero, the first at the top, with each value after its bar."""
    with mpl.rc_context(_STYLE):
        figure = Figure((_WIDTH, 0.35 + 0.32 * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        for place, bar in enumerate(bars):
            value = bar.value if bar.value == bar.value else 0.0
            axes.barh(place, value, 0.65, color=_SERIES[bar.series], gid=bar.label)
            axes.annotate(bar.text, (value, place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
        axes.margins(x=0.35)
        axes.invert_yaxis()
        axes.xaxis.set_visible(False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelcolor=_INK)
        return _svg(figure, title)


def number(value: float) -> str:
    """A number in short form: 1,500 and 0.25 instead of 1500.0 and 0.250."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _axes(x_title: str, y_title: str) -> tuple[Any, Any]:
    figure = Figure((_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x_title, ylabel=y_title)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    return figure, axes


def _svg(figure: Any, title: str) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Title": title, "Date": None})
    drawn = text.getvalue()
    drawn = re.sub("<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    return re.sub("|".join(_VARIABLES), lambda found: f"var(--{_VARIABLES[found[0]]})", drawn)
