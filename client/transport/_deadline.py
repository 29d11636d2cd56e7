"""The deadline of a call."""

import random
import time

from colcast.client._settings import check_timeout


class Deadline:
    """The time that one call of the client may wait for servers, including all retries.

    Time passes only while the transport waits, not while the process itself encodes candidates or
    runs other asyncio tasks.
    """

    def __init__(self, timeout_seconds: float) -> None:
        """Raises InputError unless the timeout is above 0."""
        check_timeout(timeout_seconds)
        self._left = timeout_seconds
        self._at = 0.0

    def __enter__(self) -> None:
        self._at = time.monotonic() + self._left

    def __exit__(self, *_: object) -> None:
        self._left = self.left()

    def left(self) -> float:
        """The remaining seconds, at least a microsecond (gRPC then reports DEADLINE_EXCEEDED)."""
        return max(self._at - time.monotonic(), 1e-6)

    def pause_after(self, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if there must not be one.

        The pause is 10 ms, doubled each time up to 200 ms, and varied by a fifth so that clients do
        not retry in step. It must end before the deadline.
        """
        pause = min(0.01 * 2 ** min(attempt - 1, 5), 0.2) * random.uniform(0.8, 1.2)
        return pause if pause < self.left() else None
