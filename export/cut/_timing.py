"""Measures each op's time with TensorFlow's trace, and the share of ops that read only the user."""

from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf
from colcast.export.graph._colours import PAIR, USER, colour
from colcast.export.graph._errors import TooLongError
from colcast.export.graph._nodes import FlatGraph
from colcast.export.graph._requests import Columns
from colcast.export.graph._sessions import Run, describe_loops
from colcast.export.graph._signature import Signature, read_signature

_RUNS = 9
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


def user_share(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    columnar_signature: str,
    user_columns: Collection[str],
    columns: Columns,
) -> float:
    """The share of a columnar signature's op time spent on ops that read only user features.

    A late signature saves more if it splits products, and less if tensors cannot be repeated.

    Args:
        meta_graph: MetaGraphDef with the signature.
        session: an initialised session on the same graph.
        columnar_signature: the signature's name.
        user_columns: inputs that are the same on every row.
        columns: a request: every input with its rows.
    """
    signature = read_signature(meta_graph, columnar_signature, user_columns)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    sides = {USER: signature.once.values(), PAIR: signature.items.values()}
    colours = colour(graph, sides, waiting=USER)
    (times,) = op_times(session, [(signature, columns)])
    users = sum(time for op, time in times.items() if colours.of.get(op) == USER)
    return users / (sum(times.values()) or 1.0)


def _times(trace: Any) -> dict[str, float]:
    times: dict[str, float] = {}
    for device in trace.step_stats.dev_stats:
        for stats in device.node_stats:
            nanos = stats.op_end_rel_nanos - stats.op_start_rel_nanos
            times[stats.node_name] = times.get(stats.node_name, 0.0) + nanos / 1e6
    return times
