"""Writes a report's folder, tables for a terminal, and progress."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from colcast.cli.console import showing_progress
from colcast.loadtest.measure.budget import about
from colcast.loadtest.measure.recording import Figures, milliseconds, share
from rich.box import SIMPLE
from rich.table import Table


def make_folder(folder: Path) -> None:
    """Makes the folder before anything is sent, so a failure here loses no results.

    Raises:
      ValueError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--output {folder}: cannot create the folder: {error}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--output {folder}: the folder is not writable")


def write(folder: Path, values: Mapping[str, Any], page: str) -> list[str]:
    """Writes report.html and report.json; returns their paths."""
    html, figures = folder / "report.html", folder / "report.json"
    html.write_text(page, encoding="utf-8")
    figures.write_text(json.dumps(values, indent=1, allow_nan=False), encoding="utf-8")
    return [str(html), str(figures)]


def figures_table(rows: Sequence[tuple[str, Figures]]) -> Table:
    """A table with one row per label; also shows server CPU as a share of the first row's."""
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


@contextmanager
def windows_shown(command: str, windows: int, seconds: float) -> Iterator[Callable[[], None]]:
    """Shows on standard error which window of a run is being measured.

    Yields a function to call after each window. `seconds` is a window's length, 0 if not known.
    """
    numbers = iter(range(1, windows + 1))
    with showing_progress(command, still=True) as tell:

        def begin() -> None:
            if number := next(numbers, 0):
                left = f", about {about((windows + 1 - number) * seconds)} left" if seconds else ""
                tell(f"window {number} of {windows}{left}")

        begin()
        yield begin
