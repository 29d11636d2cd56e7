"""Formats take turns by the clock, so that the server's CPU time is known for each.

The deciding process (the only process, or the master) announces the second in which turns begin. In
turn n of S seconds, every user of every process sends format n % k. The deciding process reads the
server's CPU time at the borders; Locust counts calls by the second in which they were answered.
Machines with workers need synchronized clocks.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil
from typing import Any

import gevent
from colcast.loadtest.measure.meters import Meter
from locust.stats import StatsEntry

ALL = ""
"""In place of a format's name: all formats, mixed."""

_BEGIN = "colcast_begin"  # the message with the second in which turns begin


def three_digits(milliseconds: float) -> float:
    """Rounds a latency for Locust's counts, which by default have whole milliseconds."""
    return float(f"{milliseconds:.3g}")


class Sender:
    """In a sending process: says which format to send now."""

    def __init__(self, environment: Any, formats: Sequence[str], seconds: int) -> None:
        """Makes the sender of a Locust environment; `seconds` is 0 to send all formats at once."""
        self._formats, self._seconds, self._begin = formats, seconds, 0.0
        environment.runner.register_message(_BEGIN, self._start)

    def format_now(self) -> str:
        """The format to send, or `ALL`; waits for the first turn."""
        if not self._seconds:
            return ALL
        while (now := time.time()) < self._begin:
            gevent.sleep(self._begin - now)
        turn = int(now - self._begin) // self._seconds
        return self._formats[turn % len(self._formats)]

    def _start(self, msg: Any, **_: Any) -> None:
        self._begin = msg.data


@dataclass(frozen=True)
class Shares:
    """A format's CPU per call as a share of the first format's in the same round."""

    rounds: int
    low: float
    high: float


class Turns:
    """In the deciding process: begins turns, and reads the server's CPU."""

    def __init__(
        self, environment: Any, formats: Sequence[str], seconds: int, meter: Callable[[], Meter]
    ) -> None:
        """Decides the turns of a Locust environment.

        Args:
          environment: Locust's environment.
          formats: the formats that take turns.
          seconds: the length of a turn; 0 to send all formats at once.
          meter: returns the server's meter at the start of each run; raises LookupError if there is
            none.
        """
        self.formats, self._seconds = formats, seconds
        self._environment, self._find_meter = environment, meter
        self._reader = gevent.Greenlet()
        self._reset()
        events = environment.events
        events.test_start.add_listener(self._start)
        events.test_stop.add_listener(lambda **_: self.end())

    @property
    def round_seconds(self) -> int:
        """The length of a round, in which each format has one turn; 0 without turns."""
        return self._seconds * len(self.formats)

    def _reset(self) -> None:
        self._meter: Meter | None = None
        self.not_measured = ""
        self._begin = 0
        self._cpu: list[float] = []  # at the beginning of each turn, and at the end of the last
        self._ended = False

    def _start(self, **_: Any) -> None:
        self._reset()
        try:
            self._meter = self._find_meter()
        except (LookupError, ProcessLookupError) as error:
            self.not_measured = str(error)
        self._begin = ceil(time.time()) + bool(self._seconds)
        self._environment.runner.send_message(_BEGIN, self._begin)
        self._reader = gevent.spawn(self._read_at_borders)

    def _read_at_borders(self) -> None:
        for turn in count() if self._seconds else (0,):
            if self._seconds:
                gevent.sleep(max(0.0, self._begin + turn * self._seconds - time.time()))
            self._cpu.append(self._cpu_seconds())

    def end(self) -> None:
        """Ends the last turn, once no calls are sent any more."""
        if not self._ended:
            self._ended = True
            self._reader.kill()
            self._cpu.append(self._cpu_seconds())

    def calls(self, format_name: str) -> StatsEntry:
        """Locust's counts of a format's calls; its content is the requests' bytes."""
        entries = self._environment.stats.entries
        found = (entry for (name, _), entry in entries.items() if name == format_name)
        return next(found, None) or StatsEntry(self._environment.stats, format_name, "")

    def answered(self, format_name: str) -> int:
        entry = self.calls(format_name)
        return int(entry.num_requests - entry.num_failures)

    def percentile_ms(self, format_name: str, percentile: float) -> float:
        """A percentile of the latencies of answered calls, to three digits; NaN without answers."""
        left = ceil(self.answered(format_name) * percentile / 100)
        for latency, calls in sorted(self.calls(format_name).response_times.items()):
            left -= calls
            if left <= 0:
                return float(latency)
        return float("nan")

    def cpu_ms(self, format_name: str) -> float:
        """The server's CPU per answered call in a format's turns; NaN if it is not known.

        For `ALL`, it is the CPU of the whole run per call of any format.
        """
        if format_name == ALL:
            calls = sum(map(self.answered, self.formats))
            return _per_call(self._cpu[-1] - self._cpu[0], calls if self._ended else 0)
        turns = list(self._turns(format_name))
        return _per_call(sum(cpu for cpu, _ in turns), sum(calls for _, calls in turns))

    def shares(self, format_name: str) -> Shares | None:
        """The shares of all complete rounds; None without one."""
        if not self._seconds:
            return None
        rounds = (len(self._cpu) - 1 - self._ended) // len(self.formats)
        of_both = zip(self._turns(self.formats[0]), self._turns(format_name), strict=False)
        found = [_per_call(*own) / _per_call(*first) for first, own in list(of_both)[:rounds]]
        found = [share for share in found if share == share]
        return Shares(len(found), min(found), max(found)) if found else None

    def _turns(self, format_name: str) -> Iterator[tuple[float, int]]:
        """The CPU seconds and the answered calls of each turn of a format."""
        entry, every = self.calls(format_name), len(self.formats)
        first = self.formats.index(format_name)
        for turn, (begin, end) in enumerate(pairwise(self._cpu)):
            if self._seconds and turn % every == first:
                # Up to the format's next turn, since calls may be answered late.
                start = self._begin + turn * self._seconds
                seconds = range(start, start + every * self._seconds)
                calls = sum(entry.num_reqs_per_sec.get(second, 0) for second in seconds)
                calls -= sum(entry.num_fail_per_sec.get(second, 0) for second in seconds)
                yield end - begin, calls

    def _cpu_seconds(self) -> float:
        try:
            return self._meter.cpu_seconds() if self._meter else float("nan")
        except (LookupError, ProcessLookupError) as error:
            self.not_measured = str(error)
            return float("nan")


def _per_call(cpu_seconds: float, calls: int) -> float:
    return 1000 * cpu_seconds / (calls or float("nan"))
