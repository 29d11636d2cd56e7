"""Interrupts that are not lost.

Python drops an exception that is raised in a destructor, a KeyboardInterrupt too: after Ctrl-C at
such a moment the program would go on.
"""

import asyncio
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_Result = TypeVar("_Result")

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""
_AGAIN_SECONDS = 0.01


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block, again where Python dropped it.

    For the main thread; the previous handlers are restored afterwards.
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


def run_until_interrupted(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Runs a coroutine that calls over gRPC; SIGINT and SIGTERM cancel it.

    A handler that raises would do so inside gRPC's own code and corrupt its memory.

    Raises:
      KeyboardInterrupt: it was cancelled, and has ended.
    """
    try:
        return asyncio.run(_cancelled_by_signals(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _cancelled_by_signals(work: Coroutine[Any, Any, _Result]) -> _Result:
    if threading.current_thread() is not threading.main_thread():
        return await work
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    finally:
        for number, handler in handlers.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _once_more(dropped: "UnraisableHookArgs") -> None:
    if dropped.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)  # by then the destructor has returned
    else:
        sys.__unraisablehook__(dropped)
