"""What a server was asked for and refused, and when to ask it again."""

import logging
import time

# What a server refused may have been one odd request's fortune, or its settings since changed.
_ASK_AGAIN_SECONDS = 600.0
# How long others wait for what the call that asks again learns: it may fail without learning.
_LEARNING_SECONDS = 10.0


class Permission:
    """Whether to ask a server for something that it may have refused before.

    After a refusal nobody asks for 10 minutes; then one call tries, and what it learns holds. Where
    it learns nothing, another one tries 10 seconds later.

    Attributes:
        was_granted: whether the server has done it, and has not refused it since.
    """

    was_granted = False

    def __init__(self) -> None:
        self._refused_until = 0.0
        self._logged = False

    def ask(self) -> bool:
        """Whether the call that begins now may ask."""
        if not self._refused_until:
            return True
        now = time.monotonic()
        if now < self._refused_until:
            return False
        self._refused_until = now + _LEARNING_SECONDS
        return True

    def refused(self) -> None:
        """The server refused, and not for what was asked."""
        self._refused_until = time.monotonic() + _ASK_AGAIN_SECONDS
        self.was_granted = False

    def granted(self) -> None:
        """The server answered."""
        self._refused_until = 0.0
        self.was_granted = True

    def log_once(self, log: logging.Logger, message: str) -> None:
        """Logs why it is refused, the first time only."""
        if not self._logged:
            self._logged = True
            log.warning(message)
