"""Searches for the highest rate that a server sustains within a latency target."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from colcast.loadtest.measure.budget import UNLIMITED, Budget
from colcast.loadtest.measure.open_loop import kept_up
from colcast.loadtest.measure.recording import Recording

_WINDOWS, _MOST = 3, 2  # windows per rate; a rate meets the target if most of its windows do
# How many rates are measured again at most, and the factor from one to the next.
_CONFIRMATIONS, _STEP_DOWN = 5, 0.95


@dataclass(frozen=True)
class Sla:
    """The latency target: `percentile` of calls must be answered within `milliseconds`."""

    percentile: float
    milliseconds: float

    def __str__(self) -> str:
        return f"p{self.percentile:g} <= {self.milliseconds:g} ms"

    def reached(self, recording: Recording) -> float:
        """The percentile in milliseconds; a failed call counts as infinitely slow.

        The result is infinite if too many calls failed or nothing was sent.
        """
        times = [
            call.answered - call.due if call.code == "OK" else np.inf for call in recording.calls
        ]
        if not times:
            return float("inf")
        return 1000 * float(np.percentile(times, self.percentile, method="higher"))


class Verdict(StrEnum):
    """Whether a window's rate met the target."""

    HOLDS = "holds"
    MISSES = "misses"
    GENERATOR_LATE = "the load generator was late"


@dataclass(frozen=True)
class Window:
    """The measurement of one window at one rate.

    Attributes:
      rate: requests per second.
      milliseconds: the target's percentile.
      verdict: whether that meets the target.
    """

    rate: float
    milliseconds: float
    verdict: Verdict

    def shown(self, sla: Sla) -> str:
        """The window as text: rate, percentile, verdict."""
        percentile = f"p{sla.percentile:g} {self.milliseconds:.1f} ms"
        return f"{self.rate:,.0f} per second, {percentile}: {self.verdict}"


class Ended(StrEnum):
    """The reason why a search ended."""

    BY_ITSELF = "it was complete"
    BUDGET = "--max-minutes"
    INTERRUPT = "an interrupt"


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
      rate: the highest rate that met the target; 0 if none did.
      windows: all measured windows, in order.
      generator_limited: whether the search stopped because the generator could not send faster;
        the server may sustain more.
      again: the rates measured again after the search, in order.
      confirmed: whether the last of `again` met the target; `rate` is then that rate.
      ended: why the search ended; if it was cut short, the server may sustain more.
    """

    rate: float
    windows: tuple[Window, ...]
    generator_limited: bool
    again: tuple[Window, ...] = ()
    confirmed: bool = False
    ended: Ended = Ended.BY_ITSELF

    @property
    def settled(self) -> bool:
        """Whether `rate` is the server's limit: confirmed, not limited by the generator or time."""
        return self.confirmed and not self.generator_limited and self.ended is Ended.BY_ITSELF


def find_max(
    run: Callable[[float, int], Recording],
    sla: Sla,
    *,
    start: float = 50.0,
    precision: float = 0.05,
    lowest: float = 1.0,
    highest: float = 100_000.0,
    progress: Callable[[Window], None] = lambda _: None,
    budget: Budget = UNLIMITED,
) -> Found:
    """Doubles the rate until it misses the target, then bisects.

    While the rate doubles, one window that meets the target is enough. After an interrupt, returns
    the result so far.

    Args:
      run: (rate, number of the window) -> its recording.
      sla: the latency target.
      start: the first rate, in requests per second.
      precision: the search stops when the highest rate that meets the target and the lowest that
          misses it are this close, relatively.
      lowest: the lowest rate to measure.
      highest: the highest rate to measure.
      progress: called after every window.
      budget: once it is spent, no further rate is measured; at least one always is.
    """
    windows: list[Window] = []

    def measured(enough: int) -> Verdict:
        """HOLDS if `enough` windows meet the target; MISSES if most miss it.

        A window in which the generator was late is ignored, unless there are three of them.
        """
        needed = {Verdict.HOLDS: enough, Verdict.MISSES: _MOST, Verdict.GENERATOR_LATE: _WINDOWS}
        verdicts: Counter[Verdict] = Counter()
        while True:
            windows.append(_judged(rate, run(rate, len(windows)), sla))
            progress(windows[-1])
            verdict = windows[-1].verdict
            verdicts[verdict] += 1
            if verdicts[verdict] == needed[verdict]:
                return verdict

    holds, misses, late, rate = 0.0, 2 * highest, False, start
    ended = Ended.BY_ITSELF
    while rate >= lowest and misses - holds > precision * misses and rate <= highest:
        if budget.spent and windows:
            ended = Ended.BUDGET
            break
        try:
            verdict = measured(1 if misses > highest else _MOST)
        except KeyboardInterrupt:
            ended = Ended.INTERRUPT
            break
        if verdict is Verdict.HOLDS:
            holds = rate
        else:
            misses, late = rate, verdict is Verdict.GENERATOR_LATE
        rate = 2 * holds if misses > highest else (holds + misses) / 2
    return Found(holds, tuple(windows), late, ended=ended)


def confirm(
    found: Found, run: Callable[[float], Recording], sla: Sla, budget: Budget = UNLIMITED
) -> tuple[Found, Recording]:
    """Measures the found rate again, then lower rates, until one meets the target.

    Args:
      found: the result of `find_max`.
      run: rate -> its recording; longer than a window of the search.
      sla: the latency target.
      budget: once it is spent, no lower rate is measured.

    Returns:
      The result, with the confirmed rate or marked as unconfirmed; and the last recording.
    """
    again: list[Window] = []
    rate = found.rate or 1.0
    for _ in range(_CONFIRMATIONS if found.rate else 1):
        recording = run(rate)
        again.append(_judged(rate, recording, sla))
        if found.rate and again[-1].verdict is Verdict.HOLDS:
            return replace(found, rate=rate, again=tuple(again), confirmed=True), recording
        if budget.spent:
            break
        rate *= _STEP_DOWN
    return replace(found, again=tuple(again)), recording


def _judged(rate: float, recording: Recording, sla: Sla) -> Window:
    reached = sla.reached(recording)
    if reached <= sla.milliseconds:
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.MISSES if kept_up(recording, sla.percentile) else Verdict.GENERATOR_LATE
    return Window(rate, reached, verdict)
