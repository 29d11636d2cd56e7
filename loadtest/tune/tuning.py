"""Searches for the server settings with the highest rate within a latency target.

The server is started with one setting after another; each is measured under an open-loop load of
the model's requests.
"""

import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from colcast.cli.console import report_console
from colcast.loadtest.measure.budget import INTERRUPTED, UNLIMITED, Budget
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.loadtest.measure.open_loop import OpenLoop, poisson
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.search import Ended, Found, Sla, Window, find_max
from colcast.loadtest.measure.series import Target, prepare
from colcast.loadtest.send import traffic
from colcast.loadtest.send.connection import Request
from colcast.loadtest.tune.climb import Knob, Setting, climb
from colcast.loadtest.tune.report import Tuned, show, write
from colcast.server import ServerProcess
from rich.console import Console

_TIMEOUT_SECONDS = 10.0
_FIRST_RATE, _WARM_UP_RATE = 50.0, 100.0  # requests per second
_WARM_UP_ROUNDS = 2  # each round has as many calls as there are different requests
_SLICE_MILLISECONDS = (0.5, 1, 2, 4, 8, 16, 1000)  # with the last value, no request is split


def knobs(cores: int) -> tuple[list[Knob], list[tuple[str, ...]]]:
    """The knobs for a machine with this number of cores, and the groups that change together."""
    upto = sorted({1, 2, *(2**power for power in range(2, 10) if 2**power <= 2 * cores), cores})
    threads = [count for count in upto if count <= cores]
    found = [
        Knob("workers", "--num_workers={}", tuple(upto), cores),
        Knob("threads per op", "--tensorflow_intra_op_parallelism={}", tuple(threads), 1),
        Knob("ms per slice", "--max_piece_milliseconds={}", _SLICE_MILLISECONDS, 2),
        Knob("join", "--join_waiting_requests={}", (0, 1), 1),
    ]
    return found, [("workers", "threads per op"), ("ms per slice", "join")]


def run(options: SimpleNamespace) -> int:
    """Tunes a model, prints the search and writes its result.

    Returns:
      0; 1 if no setting meets the target; 130 if it was interrupted.
    """
    console = report_console(stderr=options.json)
    options.output.mkdir(parents=True, exist_ok=True)
    requests = prepared(options)
    tuned = _tuned(options, requests, *knobs(len(os.sched_getaffinity(0))), console)
    written = write(tuned, options.model, options.output)
    show(tuned, console)
    for path in written:
        console.print(str(path))
    if options.json:
        print((options.output / "tune.json").read_text())
    if tuned.ended is Ended.INTERRUPT:
        return INTERRUPTED
    return 0 if tuned.climbed.figure else 1


def served(options: SimpleNamespace, *flags: str) -> ServerProcess:
    """A server of the options' model, with further flags."""
    return ServerProcess(options.model, options.model_base_path, [*options.flags, *flags])


def prepared(options: SimpleNamespace) -> Sequence[Request]:
    """The requests in the options' format, after the model has answered each once."""
    with served(options) as server:
        target = Target("", server.target)
        data = traffic.load(options, lambda: target.client(options.model, _TIMEOUT_SECONDS))
        series, left_out = prepare([target], options.model, options.formats, data)
    if left_out:
        raise RuntimeError(str(left_out[0]))
    return series[0].requests


def _tuned(
    options: SimpleNamespace,
    requests: Sequence[Request],
    turned: Sequence[Knob],
    pairs: Sequence[Sequence[str]],
    console: Console,
) -> Tuned:
    """Climbs from setting to setting; after an interrupt, returns the result so far."""
    sla = Sla(95, options.sla_p95) if options.sla_p95 else Sla(99, options.sla_p99)
    budget = Budget(60 * options.max_minutes) if options.max_minutes else UNLIMITED
    windows: dict[tuple[float, ...], list[Window]] = {}
    ended = Ended.BY_ITSELF

    def measure(setting: Setting, floor: float) -> float | None:
        nonlocal ended
        if windows and budget.spent:
            ended = Ended.BUDGET
            return None
        console.print(str(setting))
        tried = windows.setdefault(setting.values, [])

        def note(window: Window) -> None:
            tried.append(window)
            console.print(f"  {window.shown(sla)}")

        try:
            with served(options, *setting.flags) as server:
                found = _search(server, options, requests, sla, floor, note, budget)
        except KeyboardInterrupt:
            ended = Ended.INTERRUPT
            return None
        ended = found.ended
        cut_short = ended is Ended.INTERRUPT or (ended is Ended.BUDGET and not found.rate)
        return None if cut_short else found.rate

    climbed = climb(turned, pairs, measure)
    return Tuned(climbed, windows, sla, ended)


def _search(
    server: ServerProcess,
    options: SimpleNamespace,
    requests: Sequence[Request],
    sla: Sla,
    floor: float,
    note: Callable[[Window], None],
    budget: Budget,
) -> Found:
    """Searches for the server's highest rate; it is 0 if not above `floor`."""
    loop, meter = OpenLoop(server.target), ProcessMeter(server.pid, server.target)
    count = len(requests)

    def window(rate: float, number: int) -> Recording:
        schedule = poisson(rate, options.seconds, count, options.seed + number)
        return loop.run(requests, schedule, meter=meter)

    # The warm-up includes all sizes, because TensorFlow does some work once per size.
    seconds = _WARM_UP_ROUNDS * count / _WARM_UP_RATE
    loop.run(requests, poisson(_WARM_UP_RATE, seconds, count, options.seed))
    start, lowest = max(_FIRST_RATE, floor), max(1.0, floor)
    return find_max(window, sla, start=start, lowest=lowest, progress=note, budget=budget)
