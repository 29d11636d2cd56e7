"""Estimates what a request costs a server: bytes, and CPU time.

The graph, parse ops included, runs here on one thread, in a session like the server's. The cost of
feeding arrays from Python is measured in every round and subtracted; `served_ms` adds the server's
own work (receive, decode, answer).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import tensorflow as tf
from colcast.export.convert._folder import loaded
from colcast.export.graph._nodes import needed_for
from colcast.export.graph._sessions import SINGLE_THREADED, session_config
from tensorflow.core.protobuf import config_pb2

SIZES = (20, 100, 500)
_MOST_ROUNDS, _LEAST_ROUNDS, _FIRST_RUNS = 25, 3, 2
# A turn measures at most this many runs, fewer if they take long. An unmeasured run precedes them,
# because the CPU's caches still hold another graph's data.
_RUNS_IN_A_TURN, _TURN_SECONDS = 4, 0.01
_STEADY_ROUNDS, _STEADY = 7, 0.05  # stop after this many rounds if the quartiles are this close
# From "The report" in docs/late.md.
_CALL_MS, _CALL_MS_PER_MB, _REWRITTEN_MS_PER_INPUT = 0.06, 1.0, 0.0005

_NOTHING = "colcast_nothing"  # a no-op

Run = Callable[..., Any]


@dataclass(frozen=True)
class Cost:
    """The cost of one way to ask for a number of candidates.

    Attributes:
        candidates: the number of candidates.
        signature: the signature that answers.
        bytes: size of the request.
        cpu_ms: expected server CPU: the median of the runs, plus the call.
        least_ms: the runs' lower quartile, plus the call.
        most_ms: the runs' upper quartile, plus the call.
    """

    candidates: int
    signature: str
    bytes: int
    cpu_ms: float
    least_ms: float
    most_ms: float


@dataclass(frozen=True)
class Way:
    """A request as a signature receives it.

    Attributes:
        signature: its name.
        definition: its SignatureDef.
        feeds: its inputs as the graph gets them, after the server has expanded rows.
        bytes: size of the request.
    """

    signature: str
    definition: Any
    feeds: Mapping[str, Any]
    bytes: int


@dataclass(frozen=True)
class Compiled:
    """What XLA compiles, once for each number of candidates.

    Attributes:
        ops: number of compiled ops in a signature.
        warmed: numbers of candidates in the warm-up requests.
    """

    ops: int
    warmed: tuple[int, ...] = ()

    def describe(self, signature: str) -> str:
        """The cost in words."""
        warmed = ", ".join(map(str, self.warmed))
        but = f", except those of its warm-up requests ({warmed})" if warmed else ""
        return f"XLA compiles {signature} again for each number of candidates{but}"


Requests = Mapping[int, Sequence[Way]]


def measure_written(
    folder: Path, meta_graph: Any, requests: Mapping[str, Requests], seconds: float
) -> dict[str, tuple[Cost, ...]]:
    """Measures the signatures as a server will load them.

    Args:
        folder: the SavedModel's folder.
        meta_graph: its MetaGraphDef.
        requests: name -> the requests to measure under that name.
        seconds: CPU seconds for each name.

    Returns:
        Costs by name; empty if TensorFlow refuses a request.
    """
    of_each = [ways for each in requests.values() for ways in each.values()]
    signatures = {way.signature for ways in of_each for way in ways}
    for executor in (SINGLE_THREADED, ""):  # the single-threaded executor refuses TF1 control flow
        try:
            with (
                loaded(folder, meta_graph, signatures, executor) as session,
                _only_inputs(meta_graph, signatures, executor) as inputs,
            ):
                return {
                    name: _measure(session, inputs, each, seconds)
                    for name, each in requests.items()
                }
        except tf.errors.OpError:
            continue
    return {}


@contextmanager
def _only_inputs(meta_graph: Any, signatures: Iterable[str], executor: str) -> Iterator[Any]:
    """A session with the signatures' inputs and an op that does nothing.

    It shows what feeding costs. It is smaller than the signatures' session, which TensorFlow copies
    for each new set of inputs.
    """
    of_each = [meta_graph.signature_def[name].inputs.values() for name in signatures]
    names = [info.name for inputs in of_each for info in inputs]
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=session_config(executor)) as session,
    ):
        tf.import_graph_def(needed_for(meta_graph.graph_def, names), name="")
        tf.no_op(_NOTHING)
        yield session


def _measure(session: Any, inputs: Any, requests: Requests, seconds: float) -> tuple[Cost, ...]:
    """For each number of candidates, measures in turn all ways to ask for it.

    Args:
        session: has the signatures, as a server would load them.
        inputs: a session that has only their inputs.
        requests: for each number N, the ways to ask for N candidates; all N have the same
            signatures.
        seconds: CPU seconds. The first runs, which prepare the graphs, may take the same time
            again; if they take longer, larger N are left out.
    """
    end = time.process_time() + 2 * seconds
    costs: list[Cost] = []
    runs: dict[str, tuple[Run, Run]] = {}
    for candidates, asked in requests.items():
        if time.process_time() > end:
            break
        runs = runs or _runs(session, inputs, asked)
        values = [[way.feeds[name] for name in way.definition.inputs] for way in asked]
        pairs = [runs[way.signature] for way in asked]
        for way, times in zip(
            asked, _times_ms(pairs, values, seconds / len(requests)), strict=True
        ):
            low, middle, high = quantiles(times, n=4)
            ms = (served_ms(one, way) for one in (middle, low, high))
            costs.append(Cost(candidates, way.signature, way.bytes, *ms))
    return tuple(costs)


def served_ms(run_ms: float, way: Way) -> float:
    """The server's CPU for a request whose graph takes TensorFlow `run_ms`.

    The server's graph is faster by a constant per input, because many lookups run as one op.
    """
    graph = max(0.0, run_ms - _REWRITTEN_MS_PER_INPUT * len(way.feeds))
    return graph + _CALL_MS + _CALL_MS_PER_MB * way.bytes / 1e6


def _runs(session: Any, only_inputs: Any, ways: Sequence[Way]) -> dict[str, tuple[Run, Run]]:
    """For each signature, a callable that runs it and one that only feeds the same inputs."""
    takes: dict[tuple[str, ...], Run] = {}
    runs = {}
    for way in ways:
        inputs = [info.name for info in way.definition.inputs.values()]
        outputs = [info.name for info in way.definition.outputs.values()]
        names = tuple(way.definition.inputs)
        takes[names] = takes.get(names) or _callable(only_inputs, inputs, target=[_NOTHING])
        runs[way.signature] = _callable(session, inputs, fetch=outputs), takes[names]
    return runs


def _callable(session: Any, inputs: Sequence[str], **ends: Sequence[str]) -> Run:
    options = config_pb2.CallableOptions(feed=inputs, **ends)
    options.run_options.inter_op_thread_pool = -1  # run on the calling thread
    # The public Session.make_callable uses Session.run, which takes 40 microseconds per input.
    run: Run = session._make_callable_from_options(options)
    return run


def _times_ms(
    runs: Sequence[tuple[Run, Run]], values: Sequence[Sequence[Any]], seconds: float
) -> list[list[float]]:
    """CPU times of each signature's graph, in each of several rounds."""
    for (run, take), inputs in zip(runs, values, strict=True):
        for _ in range(_FIRST_RUNS):  # the first one prepares the graph
            run(*inputs)
            take(*inputs)
    times: list[list[float]] = [[] for _ in runs]
    end = time.process_time() + seconds
    while len(times[0]) < _LEAST_ROUNDS or (
        len(times[0]) < _MOST_ROUNDS and time.process_time() < end and not _steady(times)
    ):
        for (run, take), inputs, of_run in zip(runs, values, times, strict=True):
            of_run.append(1e3 * max(0.0, _of_one(run, inputs) - _of_one(take, inputs)))
    return times


def _steady(times: Sequence[Sequence[float]]) -> bool:
    """Whether more rounds would hardly change the result."""
    if len(times[0]) < _STEADY_ROUNDS:
        return False
    quartiles = [quantiles(of_run, n=4) for of_run in times]
    return all(high - low <= _STEADY * middle for low, middle, high in quartiles)


def _of_one(run: Run, inputs: Sequence[Any]) -> float:
    """CPU time of one run, averaged over several, in seconds."""
    run(*inputs)
    runs, start = 0, time.process_time()
    while not runs or (runs < _RUNS_IN_A_TURN and time.process_time() < start + _TURN_SECONDS):
        run(*inputs)
        runs += 1
    return (time.process_time() - start) / runs
