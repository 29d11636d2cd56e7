"""The console for tables, and the progress display of long commands."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


_UNBOUNDED = 10_000  # columns
_QUIET_SECONDS = 10.0


def report_console(*, stderr: bool = False) -> "Console":
    """A console for tables, on standard output or, if that gets JSON, on standard error.

    It is as wide as the terminal. Without a terminal, it has no limit, so piped output is never
    truncated. COLUMNS sets another width.
    """
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNBOUNDED
    return console


@contextmanager
def showing_progress(command: str, *, still: bool = False) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows the current step of a long command on standard error.

    A terminal shows one temporary line with the elapsed seconds. Elsewhere, each step that begins
    after the first 10 seconds prints a line. With `still`, nothing is drawn between steps, because
    that would disturb a measurement.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    started = time.monotonic()

    def line(step: str) -> None:
        seconds = time.monotonic() - started
        if seconds >= _QUIET_SECONDS:
            console.print(f"{command}: {seconds:.0f} s: {step}", highlight=False, markup=False)

    if not console.is_terminal:
        yield line
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, auto_refresh=not still) as shown:
        task = shown.add_task(command, total=None)
        yield lambda step: shown.update(task, description=step, refresh=still)


def counted(count: int, noun: str) -> str:
    """A number with its noun, such as "1 delta" and "2,000 deltas"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
