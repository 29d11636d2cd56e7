"""Figures as tables for a terminal."""

from collections.abc import Sequence
from itertools import groupby

from colcast.loadtest.figures import Figures
from colcast.loadtest.formats import FORMATS
from colcast.loadtest.side_by_side import Line
from rich.table import Table


def side_by_side_table(lines: Sequence[Line], title: str, clients: int) -> Table:
    """Server CPU first: it says how many servers a format needs, whatever the network does."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("N", justify="right")
    table.add_column("format")
    first = FORMATS[lines[0].format].title if lines else "first"
    headers = ["server CPU\nms / request", f"of\n{first}", "request\nbytes", "p50 ms\n1 client"]
    headers += ["p99 ms\n1 client", f"requests/s\n{clients} clients", "largest score\ndifference"]
    for header in headers:
        table.add_column(header, justify="right")
    if any(line.alone.errors or line.together.errors for line in lines):
        table.add_column("errors", justify="right", style="red")
    for size, of_size in groupby(lines, key=lambda line: line.candidates):
        _add_size(table, str(size), list(of_size))
    return table


def _add_size(table: Table, size: str, lines: list[Line]) -> None:
    baseline = lines[0].together.server_cpu_ms
    for line in lines:
        figures, alone = line.together, line.alone
        cells = [
            size if line is lines[0] else "",
            FORMATS[line.format].title,
            milliseconds(figures.server_cpu_ms),
            share(figures.server_cpu_ms, baseline),
            f"{figures.request_bytes:,.0f}",
            milliseconds(alone.p50_ms),
            milliseconds(alone.p99_ms),
            f"{figures.requests_per_second:,.0f}",
            f"{line.difference:.3g}",
        ]
        errors = alone.errors + figures.errors
        cells += [f"{errors}"] if len(table.columns) > len(cells) else []
        table.add_row(*cells, end_section=line is lines[-1])


def figures_table(rows: Sequence[tuple[str, Figures]]) -> Table:
    """One row a label; the others' server CPU as a share of the first's."""
    table = Table(header_style="bold")
    table.add_column("")
    headers = ["server CPU\nms / request", "of the\nfirst", "request\nbytes", "p50\nms", "p95\nms"]
    headers += ["p99\nms", "answered\n/s", "calls", "errors", "sends late\np99 ms"]
    for header in headers:
        table.add_column(header, justify="right")
    for label, figures in rows:
        table.add_row(
            label,
            milliseconds(figures.server_cpu_ms),
            share(figures.server_cpu_ms, rows[0][1].server_cpu_ms),
            f"{figures.request_bytes:,.0f}",
            *(milliseconds(value) for value in (figures.p50_ms, figures.p95_ms, figures.p99_ms)),
            f"{figures.requests_per_second:,.0f}",
            f"{figures.calls:,}",
            f"[red]{figures.errors:,}" if figures.errors else "0",
            milliseconds(figures.late_p99_ms),
        )
    return table


def milliseconds(value: float) -> str:
    """Two decimals below ten, one below a hundred; a dash for what was not measured."""
    if value != value:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def share(value: float, of: float) -> str:
    """A percentage; a dash where one of them was not measured."""
    return "-" if value != value or not of > 0 else f"{100 * value / of:.0f} %"
