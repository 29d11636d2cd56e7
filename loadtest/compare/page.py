"""The HTML page of a comparison of two servers."""

from collections.abc import Mapping
from html import escape
from typing import Any

from colcast.cli.markup import (
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
from colcast.loadtest.report.charts import Bar, bar_chart, outlines

_NAN = float("nan")
_CPU = "Server CPU per request"
_LATENCY = "Latency"
_PERCENTILES = (("p50_ms", "p50"), ("p95_ms", "p95"))

Values = Mapping[str, Any]


def render(report: Values) -> str:
    """Makes the page from a report in the form of `CompareReport.as_json`."""
    headline = report["headline"]
    parts = [
        paragraphs("problem", report["problems"]),
        verdicts(report["thresholds"]),
        paragraphs("headline", [headline] if headline else []),
        _answers(report),
        _outputs(report),
        _cost(report),
        paragraphs("note", report["notes"]),
        legend([f"{name}: {side}" for name, side in report["sides"].items()]),
        charts([*_histograms(report), *_bars(report)]),
    ]
    title = f"{report['settings']['model']}: A against B"
    return document(title, report["machine"], parts, report["settings"])


def _answers(report: Values) -> str:
    codes = {
        name: ", ".join(f"{count:,} {code}" for code, count in of.items())
        for name, of in report["codes"].items()
    }
    return paragraphs(
        "soft",
        [
            f"{report['requests']:,} requests to each, {report['answered_by_both']:,} answered by "
            f"both. A: {codes['A']}. B: {codes['B']}."
        ],
    )


def _outputs(report: Values) -> str:
    if not report["outputs"]:
        return ""
    heads = ["output", "values", "not<br>equal", "largest<br>difference", "where,<br>A, B"]
    heads += ["largest<br>relative", "top-10<br>overlap", "top-100<br>overlap"]
    heads += ["rank<br>correlation", "NaN<br>A, B", "infinite<br>A, B"]
    return table(heads, [_output(one) for one in report["outputs"]])


def _output(one: Values) -> list[str]:
    largest = one["largest_difference"]
    where = "-"
    if largest["difference"] != 0:
        row = "" if largest["candidate"] is None else f", candidate {largest['candidate']}"
        values = ", ".join(_short(largest[name]) for name in "ab")
        where = f'request {largest["request"]}{row}<br><span class="soft">{values}</span>'
    return [
        escape(one["name"]),
        f"{one['values']:,}",
        f"{one['differing']:,}",
        _difference(largest),
        where,
        _difference(one["largest_relative_difference"]),
        *(_ranks(one[name]) for name in ("top_10_overlap", "top_100_overlap", "rank_correlation")),
        *(_both(one[name]) for name in ("nan", "infinite")),
    ]


def _difference(largest: Values) -> str:
    return "infinite" if largest["difference"] is None else f"{largest['difference']:.3g}"


def _short(value: Any) -> str:
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _ranks(of: Values | None) -> str:
    if of is None:
        return "-"
    if of["lowest"] == of["mean"]:
        return f"{of['mean']:.4g}"
    lowest = f"lowest {of['lowest']:.3g},<br>request {of['request']}"
    return f'{of["mean"]:.4g}<br><span class="soft">{lowest}</span>'


def _both(counts: Values) -> str:
    text = f"{counts['A']:,}, {counts['B']:,}"
    return f'<span class="problem">{text}</span>' if any(counts.values()) else text


def _cost(report: Values) -> str:
    if not report["figures"]:
        return ""
    heads = ["", "server CPU<br>ms / request", "of A's", "bytes /<br>request", "p50<br>ms"]
    heads += ["p95<br>ms", "calls", "errors"]
    first = _number(report["figures"]["A"], "server_cpu_ms")
    rows = []
    for place, (name, of) in enumerate(report["figures"].items()):
        cpu = _number(of, "server_cpu_ms")
        rows.append(
            [
                f"{chip(place)}{name}",
                milliseconds(cpu),
                share(cpu, first),
                f"{_number(of, 'request_bytes'):,.0f}",
                *(milliseconds(_number(of, key)) for key, _ in _PERCENTILES),
                f"{of['calls']:,}",
                f'<span class="problem">{of["errors"]:,}</span>' if of["errors"] else "0",
            ]
        )
    return table(heads, rows)


def _histograms(report: Values) -> list[str]:
    return [
        figure(
            one["name"],
            "How often each score occurs; B's line is dashed.",
            outlines(
                one["histogram"]["edges"],
                [(name, one["histogram"][name.lower()]) for name in "AB"],
                x_title=one["name"],
                y_title="values",
            ),
        )
        for one in report["outputs"]
        if one["histogram"]
    ]


def _bars(report: Values) -> list[str]:
    if not report["figures"]:
        return []
    cpu, latency = [], []
    for place, (name, of) in enumerate(report["figures"].items()):
        cpu.append(_bar(name, place, _number(of, "server_cpu_ms")))
        latency += [
            _bar(f"{name}, {label}", place, _number(of, key)) for key, label in _PERCENTILES
        ]
    return [
        figure(_CPU, "User and system time of the server process.", bar_chart(cpu, _CPU)),
        figure(
            _LATENCY,
            "With one client that waits for its answers.",
            bar_chart(sorted(latency, key=lambda bar: bar.label[-3:]), _LATENCY),
        ),
    ]


def _bar(label: str, place: int, value: float) -> Bar:
    text = "not measured" if value != value else f"{milliseconds(value)} ms"
    return Bar(label, place, value, text)


def _number(figures: Values, name: str) -> float:
    value = figures[name]
    return _NAN if value is None else float(value)
