"""Writes a report's folder, tables for a terminal, and progress bars."""

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
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
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
def progress_bar(console: Console, what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Shows a bar on a terminal; yields a function to call after each of `steps` steps."""
    if not console.is_terminal:
        yield lambda: None
        return
    with _bar(console, what) as bar:
        task = bar.add_task("", total=steps)
        yield lambda: bar.advance(task)


@contextmanager
def windows_shown(
    console: Console, command: str, windows: int, seconds: float
) -> Iterator[Callable[[RenderableType], None]]:
    """Shows which window of a run is being measured, without updates during a window.

    On a terminal, shows a bar above the renderable passed after each window. Otherwise, after the
    first ten seconds, a line on standard error that begins with `command` announces each window.
    """
    bar = _bar(console, "window")
    task = bar.add_task("", total=windows)
    # No automatic refreshes: they would delay sends.
    with (
        Live(bar, console=console, auto_refresh=False, transient=True) as live,
        showing_progress(command, lines_only=True) as tell,
    ):

        def measured(shown: RenderableType) -> None:
            bar.advance(task)
            live.update(Group(bar, shown), refresh=True)
            done = round(bar.tasks[0].completed)
            if done < windows:
                left = about((windows - done) * seconds)
                tell(f"window {done + 1} of {windows}, about {left} left")

        live.refresh()
        yield measured


def _bar(console: Console, what: str) -> Progress:
    columns = TextColumn(f"[bold]{what}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True)
