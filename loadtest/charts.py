"""Charts as SVG text: nothing to load, sharp at any size, readable on paper.

Series i is drawn in the style class `s{i}` of the page around it; hovering a mark tells its value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

Point = tuple[float, float]

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 28, 16, 46
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM


@dataclass(frozen=True)
class Line:
    """Points joined by a line; `series` decides the colour, points that are not finite are gaps."""

    label: str
    series: int
    points: Sequence[Point]
    dots: bool = True


@dataclass(frozen=True)
class Bar:
    """A horizontal bar and what to write behind it."""

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
    """Lines over a common pair of axes that start at zero unless `x_ticks` say otherwise.

    Args:
      lines: what to draw.
      x_title: with the unit.
      y_title: with the unit.
      x_ticks: places and their labels; round numbers where there are none.
      limit: a dashed line at this height, with its label.
    """
    points = [point for line in lines for point in line.points if isfinite(point[1])]
    top = max([y for _, y in points] + ([limit[0]] if limit else []), default=1.0)
    y_ticks = round_ticks(top * 1.05)
    if not x_ticks:
        x_ticks = [(t, number(t)) for t in round_ticks(max([x for x, _ in points], default=1.0))]
    x = _scale(x_ticks[0][0], x_ticks[-1][0], _LEFT, _LEFT + _PLOT_WIDTH)
    y = _scale(0.0, y_ticks[-1], _TOP + _PLOT_HEIGHT, _TOP)
    parts = [_axes([(x(t), label) for t, label in x_ticks], y_ticks, y, x_title, y_title)]
    if limit:
        at, right = y(limit[0]), _WIDTH - _RIGHT
        parts.append(
            f'<line class="limit" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="limit" x="{_LEFT + 6}" y="{at - 5:.1f}">{escape(limit[1])}</text>'
        )
    parts += [_line(line, x, y, x_title, y_title) for line in lines]
    return _svg("".join(parts), _HEIGHT, f"{y_title} over {x_title}")


def bar_chart(bars: Sequence[Bar], title: str) -> str:
    """Horizontal bars from zero, the value written behind each."""
    row, left = 30, 24 + 7 * max((len(bar.label) for bar in bars), default=0)
    longest = max((bar.value for bar in bars if isfinite(bar.value)), default=1.0) or 1.0
    width = _WIDTH - left - 110
    parts = []
    for place, bar in enumerate(bars):
        top = place * row + 6
        length = bar.value / longest * width if isfinite(bar.value) else 0.0
        parts.append(
            f'<text class="name" x="{left - 8}" y="{top + 15}">{escape(bar.label)}</text>'
            f'<rect class="bar s{bar.series}" x="{left}" y="{top}" width="{length:.1f}" '
            f'height="20"><title>{escape(bar.label)}: {escape(bar.text)}</title></rect>'
            f'<text x="{left + length + 6:.1f}" y="{top + 15}">{escape(bar.text)}</text>'
        )
    return _svg("".join(parts), len(bars) * row + 8, title)


def histogram(values: Sequence[float], *, x_title: str, y_title: str, bins: int = 24) -> str:
    """How often values fall into equally wide bins from zero on; the bars are of series 0."""
    x_ticks = round_ticks(max(values, default=1.0))
    wide = x_ticks[-1] / bins
    counts = [0] * bins
    for value in values:
        counts[min(int(value / wide), bins - 1)] += 1
    y_ticks = round_ticks(max(counts), whole=True)
    x = _scale(0.0, x_ticks[-1], _LEFT, _LEFT + _PLOT_WIDTH)
    y = _scale(0.0, y_ticks[-1], _TOP + _PLOT_HEIGHT, _TOP)
    bars = [
        f'<rect class="bar s0" x="{x(n * wide) + 1:.1f}" y="{y(count):.1f}" '
        f'width="{x(wide) - x(0) - 2:.1f}" height="{y(0) - y(count):.1f}">'
        f"<title>{number(n * wide)} to {number((n + 1) * wide)}: {count}</title></rect>"
        for n, count in enumerate(counts)
        if count
    ]
    axes = _axes([(x(t), number(t)) for t in x_ticks], y_ticks, y, x_title, y_title)
    return _svg(axes + "".join(bars), _HEIGHT, f"{y_title} over {x_title}")


def round_ticks(top: float, *, whole: bool = False) -> list[float]:
    """About six round numbers, `whole` ones if asked for, from 0 to at least `top`."""
    if not (isfinite(top) and top > 0):
        top = 1.0
    rough = max(top / 5, 1.0) if whole else top / 5
    power = 10.0 ** floor(log10(rough))
    steps = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next(m * power for m in steps if m * power >= rough * 0.999)
    return [n * step for n in range(ceil(top / step * 0.999) + 1)]


def number(value: float) -> str:
    """Short: 1,500 and 0.25 rather than 1500.0 and 0.250."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / ((high - low) or 1.0) * (end - start)


def _axes(
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[float],
    y: Callable[[float], float],
    x_title: str,
    y_title: str,
) -> str:
    bottom, right = _TOP + _PLOT_HEIGHT, _WIDTH - _RIGHT
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text class="y" x="{_LEFT - 8}" y="{y(t) + 4:.1f}">{number(t)}</text>'
        for t in y_ticks
    ]
    parts += [
        f'<text class="x" x="{at:.1f}" y="{bottom + 18}">{escape(t)}</text>' for at, t in x_ticks
    ]
    center, middle = _LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT / 2
    parts.append(
        f'<text class="x title" x="{center}" y="{_HEIGHT - 8}">{escape(x_title)}</text>'
        f'<text class="x title" transform="translate(14 {middle}) rotate(-90)">'
        f"{escape(y_title)}</text>"
    )
    return "".join(parts)


def _line(
    line: Line, x: Callable[[float], float], y: Callable[[float], float], x_title: str, y_title: str
) -> str:
    runs: list[list[Point]] = [[]]
    for point in line.points:
        if isfinite(point[1]):
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    path = "".join(
        "M" + " L".join(f"{x(px):.1f} {y(py):.1f}" for px, py in run) for run in runs if run
    )
    parts = [f'<path class="line s{line.series}" d="{path}"/>'] if path else []
    if line.dots:
        parts += [
            f'<circle class="dot s{line.series}" cx="{x(px):.1f}" cy="{y(py):.1f}" r="3.5">'
            f"<title>{escape(line.label)}: {number(py)} ({escape(y_title)}), "
            f"{escape(x_title)} {number(px)}</title></circle>"
            for run in runs
            for px, py in run
        ]
    return "".join(parts)


def _svg(content: str, height: int, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{content}</svg>"
    )
