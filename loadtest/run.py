"""The measuring engine: series in turn, window by window, at a rate, with clients, or searching."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from colcast.loadtest.budget import UNLIMITED, Budget
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.correctness import check
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.process import Meter
from colcast.loadtest.recording import Recording
from colcast.loadtest.result import Result
from colcast.loadtest.schedule import poisson
from colcast.loadtest.search import Ended, Found, Sla, Window, confirm, find_max
from colcast.loadtest.series import Series
from colcast.loadtest.turns import in_turn

Meters = Mapping[str, Meter]  # address -> what its server has used
Progress = Callable[[Series, Recording], None]
WindowRequests = Callable[[Series, int], Sequence[Request]]


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes:
      seed: decides schedules; the same seed sends the same requests in the same order.
      windows: every series is measured so many times, in turn with the others.
      window_seconds: how long one window sends.
      window_calls: how many calls one window of waiting clients sends, in place of a time.
      timeout_seconds: of a call.
      keep_every: one answer of so many is checked; 0 for none.
      tolerance: the largest difference of a checked answer that is not wrong.
    """

    seed: int = 0
    windows: int = 3
    window_seconds: float = 5.0
    window_calls: int | None = None
    timeout_seconds: float = 10.0
    keep_every: int = 10
    tolerance: float = 1e-5


def at_rate(
    series: Sequence[Series],
    rate: float,
    meters: Meters,
    options: Options,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """Sends every series `rate` requests per second on the same schedule of exponential gaps.

    Args:
      series: encoded requests.
      rate: requests per second.
      meters: of the servers that can be measured.
      options: how to run.
      progress: called after every window with what it measured.
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
    *,
    window_requests: WindowRequests = lambda one, _: one.requests,
    warm_up_calls: int = 0,
) -> list[Result]:
    """Sends with clients that wait for their answers, as fast as these come.

    Args:
      series: encoded requests.
      clients: how many.
      meters: of the servers that can be measured.
      options: how to run.
      progress: called after every window with what it measured.
      window_requests: what a series sends in a window; window -1 warms up.
      warm_up_calls: how many calls warm up, at least two per client.
    """
    with ExitStack() as connected:
        loops = {
            target.address: connected.enter_context(
                ClosedLoop(
                    target.address,
                    clients,
                    timeout_seconds=options.timeout_seconds,
                    tls=target.tls,
                )
            )
            for target in {one.target for one in series}
        }
        for one in series:  # connects, and warms up
            warm_up = max(warm_up_calls, 2 * clients)
            loops[one.target.address].run(window_requests(one, -1), calls=warm_up)

        def window(one: Series, number: int) -> Recording:
            calls = options.window_calls
            return loops[one.target.address].run(
                window_requests(one, number),
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
    budget: Budget = UNLIMITED,
) -> list[Result]:
    """Finds every series' highest rate within `sla`, then measures it again at that rate.

    An interrupt ends it with what it has: the results of the series so far.
    """
    results = []
    again_seconds = options.windows * options.window_seconds
    for place, one in enumerate(series):

        def window(rate: float, number: int, one: Series = one) -> Recording:
            return _open_window(one, rate, number, meters, options)

        def again(rate: float, one: Series = one) -> Recording:
            return _joined([window(rate, number, one) for number in range(options.windows)])

        def tell(found: Window, one: Series = one) -> None:
            progress(one, found)

        own = budget.share(len(series) - place, keep=again_seconds)
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
