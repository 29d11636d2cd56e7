"""Searches for the server settings with the highest rate within a latency target.

The server is started with one setting after another; each is measured under an open-loop load of
the model's requests.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from colcast.cli.console import report_console
from colcast.loadtest.measure.budget import INTERRUPTED, UNLIMITED, Budget
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.loadtest.measure.open_loop import OpenLoop, poisson
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.search import Ended, Found, Sla, Window, find_max
from colcast.loadtest.measure.series import Target, prepare
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.loadtest.send.traffic import requested
from colcast.loadtest.tune.climb import Knob, Setting, climb
from colcast.loadtest.tune.report import Tuned, show, write
from colcast.server import ServerProcess

_TIMEOUT_SECONDS = 10.0
_WARM_UP_RATE = 100.0  # requests per second
_WARM_UP_ROUNDS = 2  # each round has as many calls as there are different requests
_OFFLOAD_STEPS = 8
_SLICE_MILLISECONDS = (0.5, 1, 2, 4, 8, 16, 1000)  # with the last value, no request is split


@dataclass(frozen=True)
class Model:
    """The model to serve.

    Attributes:
      name: the model's name.
      base_path: the folder with a subfolder per version.
      flags: further flags of the server, which are not tuned.
    """

    name: str
    base_path: Path
    flags: Sequence[str] = ()


@dataclass(frozen=True)
class Load:
    """The load for which the server is tuned.

    Attributes:
      requests: the requests, encoded for the model.
      sla: the latency target.
      seconds: the length of a window.
      start: the first rate, in requests per second.
      seed: decides when each request is sent.
    """

    requests: Sequence[Request]
    sla: Sla
    seconds: float = 3.0
    start: float = 50.0
    seed: int = 0


def knobs(
    cores: int, offloaded_sizes: Sequence[int] = ()
) -> tuple[list[Knob], list[tuple[str, ...]]]:
    """The knobs for a machine with this number of cores, and the groups that change together.

    Args:
      cores: the number of cores that the server may use.
      offloaded_sizes: the rows of each request, if requests may go to another server. As in
          DeepRecSys, all requests go there first; each step sends an equal share fewer, as long as
          that is better.
    """
    upto = sorted({1, 2, *(2**power for power in range(2, 10) if 2**power <= 2 * cores), cores})
    threads = [count for count in upto if count <= cores]
    found = [
        Knob("workers", "--num_workers={}", tuple(upto), cores),
        Knob("threads per op", "--tensorflow_intra_op_parallelism={}", tuple(threads), 1),
        Knob("ms per slice", "--max_piece_milliseconds={}", _SLICE_MILLISECONDS, 2),
        Knob("join", "--join_waiting_requests={}", (0, 1), 1),
    ]
    pairs: list[tuple[str, ...]] = [("workers", "threads per op"), ("ms per slice", "join")]
    if offloaded_sizes:
        steps = np.quantile(offloaded_sizes, np.linspace(0, 1, _OFFLOAD_STEPS), method="lower")
        rows = sorted({1, *map(int, steps), max(offloaded_sizes) + 1})
        found.append(Knob("rows to offload", "--offload_rows={}", tuple(rows), 1))
        pairs.append(("rows to offload",))
    return found, pairs


def tune(
    model: Model,
    load: Load,
    turned: Sequence[Knob],
    pairs: Sequence[Sequence[str]],
    progress: Callable[[Setting, Window], None] = lambda *_: None,
    begins: Callable[[Setting, int], None] = lambda *_: None,
    budget: Budget = UNLIMITED,
) -> Tuned:
    """Climbs from setting to setting; after an interrupt, returns the result so far.

    Args:
      model: the model to serve.
      load: the load to tune for.
      turned: the knobs.
      pairs: the knobs that are changed together.
      progress: called after every window.
      begins: called before every setting, with the number of settings that are left to try if no
        better one is found, including this one.
      budget: once it is spent, no other rate is measured.

    Raises:
      colcast.server.ServerFailedError: the server does not start with a setting.
    """
    windows: dict[tuple[float, ...], list[Window]] = {}
    ended = Ended.BY_ITSELF
    left = 0

    def settings(count: int) -> None:
        nonlocal left
        left = count

    def measure(setting: Setting, floor: float) -> float | None:
        nonlocal ended
        if windows and budget.spent:
            ended = Ended.BUDGET
            return None
        begins(setting, left)
        tried = windows.setdefault(setting.values, [])

        def note(window: Window) -> None:
            tried.append(window)
            progress(setting, window)

        try:
            found = search(model, load, setting.flags, floor, note, budget)
        except KeyboardInterrupt:
            ended = Ended.INTERRUPT
            return None
        ended = found.ended
        cut_short = ended is Ended.INTERRUPT or (ended is Ended.BUDGET and not found.rate)
        return None if cut_short else found.rate

    climbed = climb(turned, pairs, measure, left=settings)
    return Tuned(climbed, windows, load.sla, ended)


def search(
    model: Model,
    load: Load,
    flags: Sequence[str],
    floor: float = 0.0,
    progress: Callable[[Window], None] = lambda _: None,
    budget: Budget = UNLIMITED,
) -> Found:
    """Searches on a server with these flags; the rate is 0 if not above `floor`."""
    with ServerProcess(model.name, model.base_path, [*model.flags, *flags]) as server:
        loop, meter = OpenLoop(server.target), ProcessMeter(server.pid, server.target)

        def window(rate: float, number: int) -> Recording:
            schedule = poisson(rate, load.seconds, len(load.requests), load.seed + number)
            return loop.run(load.requests, schedule, meter=meter)

        # The warm-up includes all sizes, because TensorFlow does some work once per size.
        count = len(load.requests)
        warm_up = poisson(_WARM_UP_RATE, _WARM_UP_ROUNDS * count / _WARM_UP_RATE, count, load.seed)
        loop.run(load.requests, warm_up)
        return find_max(
            window,
            load.sla,
            start=max(load.start, floor),
            lowest=max(1.0, floor),
            progress=progress,
            budget=budget,
        )


def run(options: SimpleNamespace) -> int:
    """Tunes a model, prints the search and writes its result.

    Returns:
      0; 1 if no setting meets the target; 130 if it was interrupted.

    Raises:
      ValueError: options that do not fit the model.
      RuntimeError: the model has no such format, or the server does not start.
      OSError: a file cannot be read or written.
      colcast.client.ColcastError: the server refuses a request.
    """
    console = report_console(stderr=options.json)
    options.output.mkdir(parents=True, exist_ok=True)
    model = Model(options.model, options.model_base_path, options.flags)
    sla = Sla(95, options.sla_p95) if options.sla_p95 else Sla(99, options.sla_p99)
    requests = prepared(model, options.formats, requested(options).load)
    load = Load(requests, sla, options.seconds, seed=options.seed)
    if options.offload_target:
        offload = f"--offload_target={options.offload_target}"
        model = replace(model, flags=[*model.flags, offload])
    sizes = [request.rows for request in load.requests] if options.offload_target else ()
    turned, pairs = knobs(len(os.sched_getaffinity(0)), sizes)

    def begins(setting: Setting, left: int) -> None:
        console.print(f"{setting}; {left} to try, if none is better")

    def measured(_: Setting, window: Window) -> None:
        console.print(
            f"  {window.rate:,.0f} per second, p{sla.percentile:g} "
            f"{window.milliseconds:.1f} ms: {window.verdict.value}",
        )

    budget = Budget(60 * options.max_minutes) if options.max_minutes else UNLIMITED
    tuned = tune(model, load, turned, pairs, measured, begins, budget)
    written = write(tuned, model.name, options.output)
    show(tuned, console)
    for path in written:
        console.print(str(path))
    if options.json:
        print((options.output / "tune.json").read_text())
    if tuned.ended is Ended.INTERRUPT:
        return INTERRUPTED
    return 0 if tuned.climbed.figure else 1


def prepared(
    model: Model, formats: Sequence[str], data: Callable[..., Sequence[RequestData]]
) -> Sequence[Request]:
    """The requests in a format, after the model has answered each once.

    Args:
      model: the model to serve.
      formats: a list with one format.
      data: makes the requests; its argument is a function that makes a client.

    Raises:
      RuntimeError: the model does not accept that format.
    """
    with ServerProcess(model.name, model.base_path, model.flags) as server:
        target = Target("", server.target)
        rows = data(lambda: target.client(model.name, _TIMEOUT_SECONDS))
        series, left_out = prepare([target], model.name, formats, rows)
    if left_out:
        raise RuntimeError(str(left_out[0]))
    return series[0].requests
