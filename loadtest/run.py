"""Runs a comparison: series in turn, window by window, at a rate, with clients, or searching."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Outputs
from colcast.loadtest.correctness import check, expected_answers, predicts, reference_answers
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.process import Meter
from colcast.loadtest.recording import Recording
from colcast.loadtest.report import Result
from colcast.loadtest.schedule import poisson
from colcast.loadtest.search import Found, Sla, Window, find_max
from colcast.loadtest.series import Series

Meters = Mapping[str, Meter]  # address -> what its server has used


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes:
      seed: decides schedules; the same seed sends the same requests in the same order.
      windows: every series is measured so many times, in turn with the others.
      window_seconds: how long one window sends.
      timeout_seconds: of a call.
      keep_every: one answer of so many is checked.
      tolerance: the largest difference of a checked answer that is not wrong.
    """

    seed: int = 0
    windows: int = 3
    window_seconds: float = 5.0
    timeout_seconds: float = 10.0
    keep_every: int = 10
    tolerance: float = 1e-5


def at_rate(
    series: Sequence[Series],
    rate: float,
    meters: Meters,
    options: Options,
    progress: Callable[[Series, Recording], None] = lambda *_: None,
) -> list[Result]:
    """Sends every series `rate` requests a second on the same schedule of exponential gaps.

    Args:
      series: encoded requests.
      rate: requests a second.
      meters: of the servers that can be measured.
      options: how to run.
      progress: called after every window of a series with all of its windows so far.
    """

    def window(one: Series, number: int) -> Recording:
        return _open_window(one, rate, number, meters, options)

    return _in_turn(series, window, meters, options, progress)


def with_clients(
    series: Sequence[Series],
    clients: int,
    meters: Meters,
    options: Options,
    progress: Callable[[Series, Recording], None] = lambda *_: None,
) -> list[Result]:
    """Sends with clients that wait for their answers, as fast as these come."""

    def window(one: Series, number: int) -> Recording:
        address = one.target.address
        with ClosedLoop(address, clients, timeout_seconds=options.timeout_seconds) as senders:
            return senders.run(
                one.requests,
                seconds=options.window_seconds,
                meter=meters.get(address),
                keep_every=options.keep_every,
            )

    return _in_turn(series, window, meters, options, progress)


def searching(
    series: Sequence[Series],
    sla: Sla,
    meters: Meters,
    options: Options,
    progress: Callable[[Series, Window], None] = lambda *_: None,
) -> list[Result]:
    """Finds every series' highest rate within `sla`, then measures it at that rate."""
    references = _references(series)
    results = []
    for one in series:

        def window(rate: float, number: int, one: Series = one) -> Recording:
            return _open_window(one, rate, number, meters, options)

        def tell(found: Window, one: Series = one) -> None:
            progress(one, found)

        found: Found = find_max(window, sla, progress=tell)
        recording = window(found.rate or 1.0, 0)
        results.append(_result(one, recording, references[one.label], meters, options, found))
    return results


def _in_turn(
    series: Sequence[Series],
    window: Callable[[Series, int], Recording],
    meters: Meters,
    options: Options,
    progress: Callable[[Series, Recording], None],
) -> list[Result]:
    """Window by window, every series once each, the first one changing."""
    references = _references(series)
    recordings = {one.label: Recording() for one in series}
    for number in range(options.windows):
        for place in range(len(series)):
            one = series[(number + place) % len(series)]
            recordings[one.label].extend(window(one, number))
            progress(one, recordings[one.label])
    return [
        _result(one, recordings[one.label], references[one.label], meters, options)
        for one in series
    ]


def _references(series: Sequence[Series]) -> dict[str, list[Outputs]]:
    """What each series' answers have to be: the first format's of its server, given in peace.

    Asking for every series also warms it up.
    """
    first: dict[str, list[Outputs]] = {}
    references = {}
    for one in sorted(series, key=lambda one: not predicts(one.requests)):
        answers = reference_answers(one.target.address, one.requests)
        expected = first.setdefault(one.target.address, answers)
        references[one.label] = expected_answers(one.requests, answers, expected)
    return references


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
    )
    return loop.run(
        one.requests,
        schedule,
        meter=meters.get(one.target.address),
    )


def _result(
    one: Series,
    recording: Recording,
    expected: Sequence[Outputs],
    meters: Meters,
    options: Options,
    found: Found | None = None,
) -> Result:
    meter = meters.get(one.target.address)
    return Result(
        series=one,
        recording=recording,
        check=check(recording.samples, one.requests, expected, options.tolerance),
        memory_bytes=meter.memory_bytes() if meter else None,
        found=found,
    )
