"""Figures as tables for a terminal."""

from collections.abc import Sequence
from itertools import groupby

from colcast.loadtest.agreement import OutputAgreement
from colcast.loadtest.compare_report import difference_text, largest_text
from colcast.loadtest.figures import Figures, milliseconds, share
from colcast.loadtest.formats import FORMATS
from colcast.loadtest.side_by_side import Line
from rich.box import SIMPLE
from rich.table import Table


def side_by_side_table(lines: Sequence[Line], title: str) -> Table:
    """Server CPU first: it says how many servers a format needs, whatever the network does.

    It fits 80 columns; `side_by_side_legend` explains the headers.
    """
    table = _plain_table(title)
    table.add_column("N", justify="right", no_wrap=True)
    table.add_column("format", no_wrap=True)
    headers = ["CPU ms", "", "bytes", "p50 ms", "p99 ms", "req/s", "diff"]
    if any(line.alone.errors or line.together.errors for line in lines):
        headers.append("[red]errors")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for size, of_size in groupby(lines, key=lambda line: line.candidates):
        _add_size(table, str(size), list(of_size))
    return table


def side_by_side_legend(lines: Sequence[Line], clients: int) -> str:
    """What the table's headers mean."""
    first = FORMATS[lines[0].format].title
    return (
        f"CPU ms: the server's user and system time per request, and as a share of {first}'s; "
        f"req/s: answered; both with {clients} clients.\np50 ms, p99 ms: latency with one client. "
        f"diff: the largest difference of a score from {first}'s."
    )


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
            f"{line.difference:.2g}",
        ]
        if len(table.columns) > len(cells):
            cells.append(f"{alone.errors + figures.errors}")
        table.add_row(*cells, end_section=line is lines[-1])


def markdown_head(formats: Sequence[str]) -> str:
    """The head of a table with one row per model and size, for documents."""
    titles = [FORMATS[name].title for name in formats]
    heads = ["model", "N", *(f"{title}, CPU ms" for title in titles), f"{titles[-1]}, share"]
    heads += ["bytes, share", f"p95 ms, {titles[0]}", f"p95 ms, {titles[-1]}", "largest difference"]
    aligned = ["---", *["---:"] * (len(heads) - 1)]
    return f"| {' | '.join(heads)} |\n| {' | '.join(aligned)} |"


def markdown_rows(model: str, lines: Sequence[Line]) -> list[str]:
    """A model's rows: one per size, the last format against the first."""
    rows = []
    for size, of_size in groupby(lines, key=lambda line: line.candidates):
        found = list(of_size)
        first, last = found[0], found[-1]
        cells = [model, f"{size}"]
        cells += [milliseconds(line.together.server_cpu_ms) for line in found]
        cells += [
            share(last.together.server_cpu_ms, first.together.server_cpu_ms),
            share(last.together.request_bytes, first.together.request_bytes),
            milliseconds(first.alone.p95_ms),
            milliseconds(last.alone.p95_ms),
            f"{max(line.difference for line in found):.1g}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def figures_table(rows: Sequence[tuple[str, Figures]]) -> Table:
    """One row per label; server CPU also as a share of the first's; latencies in milliseconds."""
    table = _plain_table("")
    table.add_column("", no_wrap=True)
    headers = ["CPU ms", "", "bytes", "p50", "p95", "p99", "req/s", "calls", "err"]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for label, figures in rows:
        table.add_row(
            label,
            milliseconds(figures.server_cpu_ms),
            share(figures.server_cpu_ms, rows[0][1].server_cpu_ms),
            f"{figures.request_bytes:,.0f}" if figures.calls else "-",
            *(milliseconds(value) for value in (figures.p50_ms, figures.p95_ms, figures.p99_ms)),
            f"{figures.requests_per_second:,.0f}",
            f"{figures.calls:,}",
            f"[red]{figures.errors:,}" if figures.errors else "0",
        )
    return table


def agreement_table(outputs: Sequence[OutputAgreement]) -> Table:
    """One row per output: differences and where, the ranking, what is not finite."""
    table = _plain_table("")
    table.add_column("output", no_wrap=True)
    headers = ["values", "not equal", "largest difference", "relative", "top 10", "top 100"]
    for header in [*headers, "ranks", "NaN", "inf"]:
        table.add_column(header, justify="right")
    for one in outputs:
        ranking = (one.top10, one.top100, one.correlation)
        not_finite = [f"{a:,}, {b:,}" for a, b in (one.nan, one.infinite)]
        table.add_row(
            one.name,
            f"{one.values:,}",
            f"{one.differing:,}",
            largest_text(one.absolute),
            difference_text(one.relative),
            *("-" if figure is None else f"{figure.mean:.4g}" for figure in ranking),
            *not_finite,
        )
    return table


def _plain_table(title: str) -> Table:
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
