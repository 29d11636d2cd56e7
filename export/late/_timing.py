"""How long ops take, by TensorFlow's own trace."""

from typing import Any

import tensorflow as tf
from colcast.export.late._requests import Columns
from colcast.export.late._signature import Signature

_RUNS = 15


def op_times(
    session: tf.compat.v1.Session, signature: Signature, columns: Columns
) -> dict[str, float]:
    """The time of each op that a signature runs, in milliseconds: the shortest of several runs.

    Feeding and fetching are not counted. Ops that TensorFlow folds away or fuses into another are
    not there, or are there under the other's name.
    """
    fetches = list(signature.outputs.values())
    feeds = {tensor: columns[name] for name, tensor in signature.inputs.items()}
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.SOFTWARE_TRACE)
    session.run(fetches, feeds)
    runs = []
    for _ in range(_RUNS):
        trace = tf.compat.v1.RunMetadata()
        session.run(fetches, feeds, options=options, run_metadata=trace)
        runs.append(_times(trace))
    return {op: min(run[op] for run in runs if op in run) for op in runs[0]}


def _times(trace: Any) -> dict[str, float]:
    times: dict[str, float] = {}
    for device in trace.step_stats.dev_stats:
        for stats in device.node_stats:
            nanos = stats.op_end_rel_nanos - stats.op_start_rel_nanos
            times[stats.node_name] = times.get(stats.node_name, 0.0) + nanos / 1e6
    return times
