"""What was measured of one series."""

from dataclasses import dataclass

from colcast.loadtest.correctness import Check
from colcast.loadtest.recording import Recording
from colcast.loadtest.search import Found
from colcast.loadtest.series import Series

# What a server says of a request itself, not of its load.
_REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNIMPLEMENTED", "NOT_FOUND")


@dataclass
class Result:
    """What was measured of one series.

    Attributes:
      series: what was sent where.
      recording: every call.
      check: its answers under load against those in peace.
      memory_bytes: the server's at the end; None if it is not known.
      found: what a search for the highest rate found, if there was one.
    """

    series: Series
    recording: Recording
    check: Check
    memory_bytes: int | None = None
    found: Found | None = None

    @property
    def refused(self) -> int:
        """Calls refused under load although each request was answered when it was sent alone."""
        return sum(self.recording.codes[code] for code in _REFUSALS)

    @property
    def sound(self) -> bool:
        """Whether its figures may be compared: answers came, none refused, none wrong."""
        return bool(self.recording.answered) and not self.refused and not self.check.wrong
