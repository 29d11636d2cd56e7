"""Where subcommands print their tables, and what they are doing meanwhile."""

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
    """Where tables go: standard output, or standard error where JSON goes to that.

    As wide as the terminal, and as wide as the text where there is none.
    What is piped into a file or another program is searched and compared by line: a name that is
    cut at column 80 would not be found. COLUMNS sets another width.
    """
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNBOUNDED
    return console


@contextmanager
def showing_progress(command: str, *, lines_only: bool = False) -> Iterator[Callable[[str], None]]:
    """Gives a function that says on standard error what a long command begins to do.

    A terminal has one line, with the seconds so far, that is gone in the end. Elsewhere each step
    that begins when the command has run for 10 seconds is a line. With `lines_only` a terminal has
    nothing: what runs shows something of its own there.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    started = time.monotonic()

    def line(step: str) -> None:
        seconds = time.monotonic() - started
        if seconds >= _QUIET_SECONDS:
            console.print(f"{command}: {seconds:.0f} s: {step}", highlight=False, markup=False)

    if lines_only or not console.is_terminal:
        yield (lambda _: None) if console.is_terminal else line
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(command, total=None)
        yield lambda step: shown.update(task, description=step)
