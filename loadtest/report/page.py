"""Renders the report as one self-contained, printable HTML file."""

from collections.abc import Callable, Mapping, Sequence
from math import inf, log10
from statistics import median
from typing import Any

from colcast.cli.markup import COLOURS, page
from colcast.loadtest.measure.recording import milliseconds, share
from colcast.loadtest.measure.search import Ended
from colcast.loadtest.report.charts import Bar, Line, bar_chart, line_chart, number

_NAN = float("nan")
_CPU, _BYTES = "Server CPU per request", "Bytes per request"

Series = Mapping[str, Any]
Drawn = tuple[str, str, str]  # title, explanation, SVG


def render(report: Mapping[str, Any]) -> str:
    """Makes the page from a report in the form of `Report.as_json`."""
    series = report["series"]
    return page(
        "loadtest.report/page.html",
        FILTERS,
        **report,
        title=f"Load test of {report['settings'].get('model', 'a model')}",
        servers=any(one["server"] for one in series),
        searched=any(one["search"] for one in series),
        labels=[one["label"] for one in series],
        figures=_figures(report),
    )


def measured(value: float | None) -> float:
    """A figure of a report; NaN if it was not measured."""
    return _NAN if value is None else float(value)


def bar(label: str, place: int, value: float | None, unit: str = "ms") -> Bar:
    """A bar with its value and unit."""
    shown = f"{milliseconds(measured(value)) if unit == 'ms' else f'{measured(value):,.0f}'} {unit}"
    text = "not measured" if value is None else shown
    return Bar(label, place % COLOURS, measured(value), text)


def _rate(search: Mapping[str, Any] | None) -> str:
    """The highest rate of a search."""
    if not search or search["highest_rate"] is None:
        return "-"
    cut_short = search["generator_limited"] or search["ended_by"] == Ended.BUDGET
    return ("≥ " if cut_short else "") + number(search["highest_rate"])


FILTERS: dict[str, Callable[..., str]] = {
    "ms": lambda value: milliseconds(measured(value)),
    "share": lambda value, of: share(measured(value), measured(of)),
    "number": lambda value: "-" if value is None else number(value),
    "difference": lambda value: "infinite" if value is None else f"{value:.3g}",
    "rate": _rate,
}
"""The filters of pages with figures, in which None is a figure that was not measured."""


def _figures(report: Mapping[str, Any]) -> list[Drawn]:
    series = report["series"]

    def bars(title: str, explanation: str, figure: str, unit: str) -> Drawn:
        drawn = [
            bar(one["label"], place, one["figures"][figure], unit)
            for place, one in enumerate(series)
        ]
        return title, explanation, bar_chart(drawn, title)

    figures = [
        bars(
            _CPU,
            "User and system time of the server process: how many servers a format needs.",
            "server_cpu_ms",
            "ms",
        ),
        bars(_BYTES, "As sent, without gRPC's headers.", "request_bytes", "bytes"),
        (
            "Latency percentiles",
            "Measured from when a call was due; the scale stretches the slow end.",
            _percentiles(series),
        ),
        (
            "Latency over time",
            "95th percentile of each window of the run; a rising line means a growing queue.",
            _over_time(series),
        ),
    ]
    if any(one["search"] for one in series):
        explanation = (
            "Every rate that was tried; the highest sustained rate is where a line crosses."
        )
        figures.append(("Latency by rate", explanation, _against_rate(series, report["sla"])))
    return figures


def _percentiles(series: Sequence[Series]) -> str:
    """Draws latency by percentile; 90, 99 and 99.9 are evenly spaced."""

    def place(percentile: float) -> float:
        return -log10(1 - percentile / 100)

    ticks = [(place(p), f"{p:g} %") for p, _ in series[0]["percentiles_ms"]] if series else []
    lines = [
        Line(
            one["label"],
            n % COLOURS,
            [(place(p), measured(ms)) for p, ms in one["percentiles_ms"]],
        )
        for n, one in enumerate(series)
    ]
    return line_chart(lines, x_title="percentile of calls", y_title="latency, ms", x_ticks=ticks)


def _over_time(series: Sequence[Series]) -> str:
    lines = [
        Line(
            one["label"],
            n % COLOURS,
            [(stretch["seconds"], stretch["p95_ms"]) for stretch in one["timeline"]],
            dots=False,
        )
        for n, one in enumerate(series)
    ]
    return line_chart(lines, x_title="seconds since the start", y_title="p95 latency, ms")


def _against_rate(series: Sequence[Series], sla: Mapping[str, float]) -> str:
    """Draws latency against rate: each rate's median, unless it is far above the target."""
    lines = []
    for n, one in enumerate(series):
        by_rate: dict[float, list[float]] = {}
        for window in one["search"]["windows"] if one["search"] else []:
            ms = inf if window["milliseconds"] is None else window["milliseconds"]
            by_rate.setdefault(window["rate"], []).append(ms)
        points = [(rate, median(found)) for rate, found in sorted(by_rate.items())]
        kept = [(rate, ms) for rate, ms in points if ms <= 2 * sla["milliseconds"]]
        lines.append(Line(one["label"], n % COLOURS, kept))
    name = f"p{sla['percentile']:g}"
    return line_chart(
        lines,
        x_title="requests per second",
        y_title=f"{name} latency, ms",
        limit=(sla["milliseconds"], f"{name} target {sla['milliseconds']:g} ms"),
    )
