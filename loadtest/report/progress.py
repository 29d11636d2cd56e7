"""Progress bars that disappear when the work is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from colcast.cli.console import showing_progress
from colcast.loadtest.measure.budget import about
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


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
    """Shows which window of a run is being measured; does not update during a window.

    A terminal shows a bar above the renderable passed after each window. Otherwise, each window
    that begins after the first ten seconds prints a line on standard error.

    Args:
      console: the terminal.
      command: the prefix of the lines.
      windows: the number of windows.
      seconds: the length of a window.
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
