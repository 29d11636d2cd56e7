"""Whether to ask a server for what it may not be able to do."""

import time

# What a server refused may have been one odd request's fortune, or its settings since changed.
_ASK_AGAIN_SECONDS = 600.0


class Permission:
    """Whether to ask a server for something that it may have refused before.

    After a refusal nobody asks for 10 minutes; then one call tries, and what it learns holds.
    """

    def __init__(self) -> None:
        self._refused_until = 0.0

    def ask(self) -> bool:
        """Whether the call that begins now may ask."""
        if not self._refused_until:
            return True
        now = time.monotonic()
        if now < self._refused_until:
            return False
        self._refused_until = now + _ASK_AGAIN_SECONDS  # the others wait for what this one learns
        return True

    def refused(self) -> None:
        """The server refused, and answered when it was asked in another way."""
        self._refused_until = time.monotonic() + _ASK_AGAIN_SECONDS

    def granted(self) -> None:
        """The server answered."""
        self._refused_until = 0.0
