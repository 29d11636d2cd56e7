"""Measures each op's time with TensorFlow's trace."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import TooLongError
from colcast.export.graph._sessions import Columns, Run, describe_loops
from colcast.export.graph._signature import Signature

_RUNS = 5
_RUN_SECONDS = 60


def op_times(
    session: tf.compat.v1.Session, timed: Sequence[tuple[Signature, Columns]]
) -> list[dict[str, float]]:
    """The shortest time of each op in several runs of a signature, in milliseconds.

    Signatures run in turn, so that other load on the machine slows all of them alike. Feeding and
    fetching do not count. Ops that TensorFlow folds are missing; ops that it fuses appear under the
    name of the op that absorbs them.

    Raises:
        TooLongError: a run does not end.
    """
    runs = [
        Run(session, list(signature.inputs.values()), list(signature.outputs.values()))
        for signature, _ in timed
    ]
    values = [[columns[name] for name in signature.inputs] for signature, columns in timed]
    times: list[list[dict[str, float]]] = [[] for _ in timed]
    for turn in range(_RUNS + 1):
        for run, given, (signature, _), of_run in zip(runs, values, timed, times, strict=True):
            trace = tf.compat.v1.RunMetadata()
            try:
                run(given, _RUN_SECONDS, trace)
            except tf.errors.DeadlineExceededError as error:
                done = f"a timed signature did not finish within {_RUN_SECONDS} s"
                loops = describe_loops(session.graph, signature.inputs, signature.outputs.values())
                raise TooLongError(f"{done}; {loops}".rstrip("; ")) from error
            if turn:  # the first run prepares the graph
                of_run.append(_times(trace))
    return [{op: min(of[op] for of in each if op in of) for op in each[0]} for each in times]


def _times(trace: Any) -> dict[str, float]:
    times: dict[str, float] = {}
    for device in trace.step_stats.dev_stats:
        for stats in device.node_stats:
            nanos = stats.op_end_rel_nanos - stats.op_start_rel_nanos
            times[stats.node_name] = times.get(stats.node_name, 0.0) + nanos / 1e6
    return times
