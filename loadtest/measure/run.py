"""Measures series in alternating windows: at a rate, with waiting clients, or in a search."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TypeVar

import numpy as np
from colcast.loadtest.measure.budget import Budget
from colcast.loadtest.measure.closed_loop import ClosedLoop
from colcast.loadtest.measure.correctness import Check, check
from colcast.loadtest.measure.meters import Meter
from colcast.loadtest.measure.open_loop import OpenLoop, poisson
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.search import Ended, Found, Sla, Window, confirm, find_max
from colcast.loadtest.measure.series import Series
from colcast.loadtest.send.connection import Connection

Thing = TypeVar("Thing")
Measured = TypeVar("Measured")
Meters = Mapping[str, Meter]  # address -> meter of the server
Progress = Callable[[Series, Recording], None]


@dataclass(frozen=True)
class Options:
    """The options of a measurement.

    Attributes:
      seed: decides the schedules; the same seed sends the same requests in the same order.
      windows: the number of windows per series; the series alternate.
      window_seconds: the length of a window.
      window_calls: the number of calls in a window of waiting clients, instead of a length.
      warm_up_calls: the least number of calls of each series before its first window.
      timeout_seconds: the timeout of a call.
      keep_every: the number of calls from one checked answer to the next; 0 for no checks.
      tolerance: the largest relative difference of a correct answer.
    """

    seed: int = 0
    windows: int = 3
    window_seconds: float = 5.0
    window_calls: int | None = None
    warm_up_calls: int = 0
    timeout_seconds: float = 10.0
    keep_every: int = 10
    tolerance: float = 1e-5


# gRPC codes of failures due to the request, not to the load.
_REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNIMPLEMENTED", "NOT_FOUND")


@dataclass
class Result:
    """The measurements of one series.

    Attributes:
      series: the measured series.
      recording: all calls.
      check: the comparison of its answers under load with its answers before.
      memory_bytes: the server's memory at the end; None if it is not known.
      found: the result of the search for the highest rate, if there was one.
    """

    series: Series
    recording: Recording
    check: Check
    memory_bytes: int | None = None
    found: Found | None = None

    @property
    def refused(self) -> int:
        """The number of calls refused under load; each request was accepted when sent alone."""
        return sum(self.recording.codes[code] for code in _REFUSALS)

    @property
    def sound(self) -> bool:
        """Whether the figures may be compared: there are answers, and none was refused or wrong."""
        return bool(self.recording.answered) and not self.refused and not self.check.wrong


def at_rate(
    series: Sequence[Series],
    rate: float,
    meters: Meters,
    options: Options,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """Sends `rate` requests per second of every series, on the same schedule (exponential gaps).

    Other arguments are those of `with_clients`.
    """

    def window(one: Series, number: int) -> Recording:
        return _open_window(one, rate, number, meters, options)

    return _windows_in_turn(series, window, meters, options, progress)


def with_clients(
    series: Sequence[Series],
    clients: int,
    meters: Meters,
    options: Options,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """Sends as fast as possible with clients that wait for their answers.

    Args:
      series: encoded requests.
      clients: the number of clients.
      meters: the meters of the servers that can be measured.
      options: how to measure.
      progress: called after every window with its measurements.
    """
    with ExitStack() as connected:
        loops = {
            target.address: connected.enter_context(
                ClosedLoop(
                    partial(Connection, target.address, options.timeout_seconds, target.tls),
                    clients,
                )
            )
            for target in {one.target for one in series}
        }
        warm_up = max(options.warm_up_calls, 2 * clients)
        for one in series:  # connect, and warm up
            loops[one.target.address].run(one.requests, calls=warm_up)

        def window(one: Series, number: int) -> Recording:
            calls = options.window_calls
            sent = warm_up + number * (calls or 0) if one.fresh else 0
            return loops[one.target.address].run(
                one.requests[sent:],
                calls=calls,
                seconds=None if calls else options.window_seconds,
                meter=meters.get(one.target.address),
                keep_every=options.keep_every,
            )

        return _windows_in_turn(series, window, meters, options, progress)


def searching(
    series: Sequence[Series],
    sla: Sla,
    meters: Meters,
    options: Options,
    progress: Callable[[Series, Window], None] = lambda *_: None,
    max_seconds: float = inf,
) -> list[Result]:
    """Finds the highest rate within `sla` for every series, then measures each at that rate again.

    Each search ends after about `max_seconds`. After an interrupt, returns the results so far.
    """
    results = []
    for one in series:

        def window(rate: float, number: int, one: Series = one) -> Recording:
            return _open_window(one, rate, number, meters, options)

        def again(rate: float, one: Series = one) -> Recording:
            return _joined([window(rate, number, one) for number in range(options.windows)])

        def tell(found: Window, one: Series = one) -> None:
            progress(one, found)

        own = Budget(max_seconds)
        found, recording = find_max(window, sla, progress=tell, budget=own), Recording()
        if found.ended is not Ended.INTERRUPT:
            try:
                found, recording = confirm(found, again, sla, own)
            except KeyboardInterrupt:
                found = replace(found, ended=Ended.INTERRUPT)
        results.append(_result(one, recording, meters, options, found))
        if found.ended is Ended.INTERRUPT:
            break
    return results


def _windows_in_turn(
    series: Sequence[Series],
    window: Callable[[Series, int], Recording],
    meters: Meters,
    options: Options,
    progress: Progress,
) -> list[Result]:
    def measured(one: Series, number: int) -> Recording:
        recording = window(one, number)
        progress(one, recording)
        return recording

    return [
        _result(one, _joined(recordings), meters, options)
        for one, recordings in zip(series, in_turn(series, measured, options.windows), strict=True)
    ]


def _joined(recordings: Sequence[Recording]) -> Recording:
    total = Recording()
    for recording in recordings:
        total.extend(recording)
    return total


def _open_window(
    one: Series,
    rate: float,
    number: int,
    meters: Meters,
    options: Options,
) -> Recording:
    seed = int(np.random.SeedSequence([options.seed, number]).generate_state(1)[0])
    schedule = poisson(rate, options.window_seconds, len(one.requests), seed)
    loop = OpenLoop(
        one.target.address,
        timeout_seconds=options.timeout_seconds,
        keep_every=options.keep_every,
        tls=one.target.tls,
    )
    return loop.run(
        one.requests,
        schedule,
        meter=meters.get(one.target.address),
    )


def _result(
    one: Series,
    recording: Recording,
    meters: Meters,
    options: Options,
    found: Found | None = None,
) -> Result:
    meter = meters.get(one.target.address)
    return Result(
        series=one,
        recording=recording,
        check=check(recording.samples, one.requests, one.expected, options.tolerance),
        memory_bytes=meter.memory_bytes() if meter else None,
        found=found,
    )


def in_turn(
    things: Sequence[Thing], measure: Callable[[Thing, int], Measured], rounds: int
) -> list[list[Measured]]:
    """Measures all things in every round; each round starts with the next thing.

    Returns:
      One list per thing, in the order of `things`, with one entry per round.
    """
    measured: list[list[Measured]] = [[] for _ in things]
    for number in range(rounds):
        for position in range(len(things)):
            place = (number + position) % len(things)
            measured[place].append(measure(things[place], number))
    return measured
