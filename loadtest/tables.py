"""Figures as tables for a terminal."""

from collections.abc import Iterable, Sequence
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


def milliseconds(value: float) -> str:
    """Two decimals below ten, one below a hundred; a dash for what was not measured."""
    if value != value:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def share(value: float, of: float) -> str:
    """A percentage; a dash where one of them was not measured."""
    return "-" if value != value or not of > 0 else f"{100 * value / of:.0f} %"


def error_lines(figures: Iterable[tuple[str, Figures]]) -> list[str]:
    """One sentence for every format with errors: how many, which codes, the first message."""
    return [
        f"{name}: {found.errors} of {found.calls} calls failed "
        f"({', '.join(f'{code} {n}' for code, n in found.codes.items() if code != 'OK')}), "
        f"first {found.first_error}"
        for name, found in figures
        if found.errors
    ]
