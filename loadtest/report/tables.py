"""Figures as tables for a terminal."""

from collections.abc import Sequence

from colcast.loadtest.measure.figures import Figures, milliseconds, share
from rich.box import SIMPLE
from rich.table import Table


def figures_table(rows: Sequence[tuple[str, Figures]]) -> Table:
    """One row per label; server CPU also as a share of the first's; latencies in milliseconds."""
    table = plain_table("")
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


def plain_table(title: str) -> Table:
    """A table without lines between its rows."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
