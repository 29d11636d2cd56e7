"""A limit to the time of a search; durations as text."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class Budget:
    """A time budget that starts now.

    Attributes:
      seconds: its length.
      now: the clock.
    """

    seconds: float = inf
    now: Callable[[], float] = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.now())

    @property
    def left(self) -> float:
        """The seconds left; negative once it is spent."""
        return self.seconds - (self.now() - self.began)

    @property
    def spent(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    def share(self, of: int, *, keep: float = 0.0) -> "Budget":
        """An equal share of the remaining time among `of`, after `keep` seconds are reserved."""
        return Budget(self.left / of - keep, self.now)


UNLIMITED = Budget()


def about(seconds: float) -> str:
    """A duration as text, such as "20 s", "4 min" or "1.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
