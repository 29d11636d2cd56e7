"""Ends a run at a time limit or on an interrupt; formats durations."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


class Budget:
    """A time budget that starts now: so many seconds of the clock `now`."""

    def __init__(self, seconds: float = inf, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._end = now, now() + seconds

    @property
    def spent(self) -> bool:
        return self._now() >= self._end


UNLIMITED = Budget()


def about(seconds: float) -> str:
    """A duration as text, such as "20 s", "4 min" or "1.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


INTERRUPTED = 130
"""The exit code of an interrupted command."""
_AGAIN_SECONDS = 0.01


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes SIGINT and SIGTERM raise KeyboardInterrupt in the block.

    Python drops exceptions raised in a destructor; a KeyboardInterrupt dropped there is raised
    again. Works only in the main thread; restores the previous handlers afterwards.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    handlers = {number: signal.signal(number, _interrupt) for number in numbers}
    hook, sys.unraisablehook = sys.unraisablehook, _once_more
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _once_more(dropped: "UnraisableHookArgs") -> None:
    if dropped.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)  # by then the destructor has returned
    else:
        sys.__unraisablehook__(dropped)
