"""Makes sure that interrupts are not lost.

Python drops an exception that is raised in a destructor, including KeyboardInterrupt. After Ctrl-C
at such a moment, the program would continue.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
"""The exit code of an interrupted command."""
_AGAIN_SECONDS = 0.01


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block, again if Python dropped it.

    For the main thread only; restores the previous handlers afterwards.
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
