"""The HTML page of a comparison of two servers."""

from collections.abc import Mapping
from typing import Any

from colcast.cli.markup import page
from colcast.loadtest.report.charts import bar_chart
from colcast.loadtest.report.page import FILTERS, bar

_CPU = "Server CPU per request"
_LATENCY = "Latency"

Values = Mapping[str, Any]


def render(report: Values) -> str:
    """Makes the page from a report in the form of `CompareReport.as_json`."""
    codes = {
        name: ", ".join(f"{count:,} {code}" for code, count in of.items())
        for name, of in report["codes"].items()
    }
    answers = (
        f"{report['requests']:,} requests to each, {report['answered_by_both']:,} answered by "
        f"both. A: {codes['A']}. B: {codes['B']}."
    )
    return page(
        "loadtest.compare/page.html",
        {**FILTERS, "short": _short},
        **report,
        title=f"{report['settings']['model']}: A against B",
        answers=answers,
        labels=[f"{name}: {side}" for name, side in report["sides"].items()],
        drawn=_bars(report["figures"]) if report["figures"] else [],
    )


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bars(figures: Values) -> list[tuple[str, str, str]]:
    sides = list(enumerate(figures.items()))
    cpu = [bar(name, place, of["server_cpu_ms"]) for place, (name, of) in sides]
    latency = [
        bar(f"{name}, {percentile}", place, of[f"{percentile}_ms"])
        for percentile in ("p50", "p95")
        for place, (name, of) in sides
    ]
    return [
        (_CPU, "User and system time of the server process.", bar_chart(cpu, _CPU)),
        (_LATENCY, "With one client that waits for its answers.", bar_chart(latency, _LATENCY)),
    ]
