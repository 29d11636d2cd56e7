"""Waits for other processes and threads."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], timeout_seconds: float = 240) -> None:
    """Waits until condition() is true."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)
