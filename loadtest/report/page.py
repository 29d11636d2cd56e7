"""Renders the report as one self-contained, printable HTML file."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from statistics import median
from typing import Any

from colcast.cli.markup import (
    COLOURS,
    charts,
    chip,
    document,
    figure,
    legend,
    paragraphs,
    table,
    verdicts,
)
from colcast.loadtest.measure.recording import milliseconds, share
from colcast.loadtest.measure.search import Ended
from colcast.loadtest.report.charts import Bar, Line, bar_chart, histogram, line_chart, number

_NAN = float("nan")

Series = Mapping[str, Any]


def render(report: Mapping[str, Any]) -> str:
    """Makes the page from a report in the form of `Report.as_json`."""
    series = report["series"]
    model = report["settings"].get("model", "a model")
    parts = [
        paragraphs("problem", report["problems"]),
        verdicts(report["thresholds"]),
        _headline(report["headline"]),
        _table(series),
        paragraphs("note", report["notes"]),
        legend([f"{one['label']}: {one['format']}" for one in series]),
        charts(_figures(report)),
    ]
    return document(f"Load test of {model}", report["machine"], parts, report["settings"])


def _figures(report: Mapping[str, Any]) -> list[str]:
    series = report["series"]
    figures = [
        figure(
            "Server CPU per request",
            "User and system time of the server process: how many servers a format needs.",
            bar_chart(_bars(series, "server_cpu_ms", "ms"), "Server CPU per request"),
        ),
        figure(
            "Bytes per request",
            "As sent, without gRPC's headers.",
            bar_chart(_bars(series, "request_bytes", "bytes"), "Bytes per request"),
        ),
        figure(
            "Latency percentiles",
            "Measured from when a call was due; the scale stretches the slow end.",
            _percentiles(series),
        ),
        figure(
            "Latency over time",
            "95th percentile of each window of the run; a rising line means a growing queue.",
            _over_time(series),
        ),
    ]
    if any(one["search"] for one in series):
        figures.append(
            figure(
                "Latency by rate",
                "Every rate that was tried; the highest sustained rate is where a line crosses.",
                _against_rate(series, report["sla"]),
            )
        )
    if report["candidates"]:
        figures.append(
            figure(
                "Candidates per request",
                "How often each number of candidates occurs.",
                histogram(report["candidates"], x_title="candidates", y_title="requests"),
            )
        )
    return figures


def _headline(headline: Mapping[str, Any] | None) -> str:
    """The headline as a sentence; empty if there is none."""
    if headline is None:
        return ""
    gains = ", ".join(
        f"<b>{escape(share)}</b> {escape(of)} ({escape(values)})"
        for share, of, values in headline["gains"]
    )
    return (
        f'<p class="headline"><b>{escape(headline["best"])}</b>'
        f" against {escape(headline['first'])}: "
        f"{gains}.</p>"
    )


def _table(series: Sequence[Series]) -> str:
    with_search = any(one["search"] for one in series)
    with_server = any(one["server"] for one in series)
    heads = ["server"] if with_server else []
    heads += ["format", "server CPU<br>ms / request", "of the<br>first", "bytes /<br>request"]
    heads += ["p50<br>ms", "p95<br>ms", "p99<br>ms", "answered /s", "calls", "errors"]
    heads += ["checked<br>answers", "largest<br>difference", "sends late<br>p99 ms"]
    heads += ["highest<br>rate /s"] if with_search else []
    rows = []
    for place, one in enumerate(series):
        cells = [escape(one["server"])] if with_server else []
        cells += [chip(place) + escape(one["format"])]
        cells += _cells(one, series[0])
        if with_search:
            cells.append(_highest_rate(one["search"]))
        rows.append(cells)
    return table(heads, rows, named=with_server)


def _cells(one: Series, first: Series) -> list[str]:
    figures, checked = one["figures"], one["checked"]
    cpu = _value(one, "server_cpu_ms")
    difference = checked["largest_difference"]
    return [
        milliseconds(cpu),
        share(cpu, _value(first, "server_cpu_ms")),
        number(_value(one, "request_bytes")) if figures["request_bytes"] else "-",
        *(milliseconds(_value(one, name)) for name in ("p50_ms", "p95_ms", "p99_ms")),
        number(figures["requests_per_second"]),
        f"{figures['calls']:,}",
        f'<span class="problem">{figures["errors"]:,}</span>' if figures["errors"] else "0",
        f"{checked['answers']:,}",
        "infinite" if difference is None else f"{difference:.3g}",
        milliseconds(_value(one, "late_p99_ms")),
    ]


def _highest_rate(search: Mapping[str, Any] | None) -> str:
    if not search or search["highest_rate"] is None:
        return "-"
    cut_short = search["generator_limited"] or search["ended_by"] == Ended.BUDGET.value
    return ("≥ " if cut_short else "") + number(search["highest_rate"])


def _bars(series: Sequence[Series], figure: str, unit: str) -> list[Bar]:
    bars = []
    for place, one in enumerate(series):
        value = _value(one, figure)
        shown = milliseconds(value) if unit == "ms" else f"{value:,.0f}"
        text = "not measured" if value != value else f"{shown} {unit}"
        bars.append(Bar(one["label"], place % COLOURS, value, text))
    return bars


def _percentiles(series: Sequence[Series]) -> str:
    """Draws latency by percentile; 90, 99 and 99.9 are evenly spaced."""

    def place(percentile: float) -> float:
        return -log10(1 - percentile / 100)

    ticks = [(place(p), f"{p:g} %") for p, _ in series[0]["percentiles_ms"]] if series else []
    lines = [
        Line(
            one["label"],
            n % COLOURS,
            [(place(p), _NAN if ms is None else ms) for p, ms in one["percentiles_ms"]],
        )
        for n, one in enumerate(series)
    ]
    return line_chart(lines, x_title="percentile of calls", y_title="latency, ms", x_ticks=ticks)


def _over_time(series: Sequence[Series]) -> str:
    lines = [
        Line(
            one["label"],
            n % COLOURS,
            [
                (stretch["seconds"], stretch["p95_ms"])
                for stretch in one["timeline"]
                if stretch["p95_ms"] is not None
            ],
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
            ms = float("inf") if window["ms"] is None else window["ms"]
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


def _value(one: Series, figure: str) -> float:
    value = one["figures"][figure]
    return _NAN if value is None else float(value)
