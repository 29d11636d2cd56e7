"""Schedules: when each request is due, and which one it is.

A schedule is fixed before the run; a seed always makes the same one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Schedule:
    """Call i sends `requests[request[i]]` at `due[i]` seconds; `due` is ascending."""

    due: npt.NDArray[np.float64]
    request: npt.NDArray[np.int64]

    @property
    def seconds(self) -> float:
        """When the last call is due, in seconds."""
        return float(self.due[-1]) if len(self.due) else 0.0


def poisson(rate: float, seconds: float, distinct: int, seed: int) -> Schedule:
    """A Poisson process: gaps are exponential, so calls come in bursts, as from independent users.

    Args:
      rate: the mean number of calls per second.
      seconds: the length of the schedule.
      distinct: the number of different requests; each is sent once before any is sent again.
      seed: decides all random choices.

    Raises:
      ValueError: `rate`, `seconds` or `distinct` is not positive.
    """
    if not (rate > 0 and seconds > 0 and distinct > 0):
        raise ValueError(
            f"rate {rate}/s, {seconds} s and {distinct} requests: all have to be positive"
        )
    random = np.random.default_rng(seed)
    due = np.cumsum(random.exponential(1 / rate, int(rate * seconds * 1.5) + 100))
    due = due[due < seconds]
    rounds = -(-len(due) // distinct)
    order = [random.permutation(distinct) for _ in range(rounds)]
    request = np.concatenate(order)[: len(due)] if order else np.array([], np.int64)
    return Schedule(due, request)
