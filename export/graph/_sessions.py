"""Sessions for running models."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import pywrap_tf_session

Array = np.ndarray[Any, np.dtype[Any]]
Columns = Mapping[str, Array]

# The native server uses this executor for every model that the executor supports.
SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"


def session_config(executor: str = "") -> Any:
    """A configuration with one thread, so that equal graphs compute equal bits.

    A process has one thread pool for work inside ops; its first session sets the pool's size.
    """
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
        device_count={"GPU": 0},
        allow_soft_placement=True,  # of a model that was saved on a machine with a GPU
    )
    config.experimental.executor_type = executor
    config.experimental.disable_output_partition_graphs = True
    # These take half of a graph's preparation time and have no effect on a CPU. The native server
    # leaves the first two out, too (server/engine/model_sessions.cc).
    rewriting = config.graph_options.rewrite_options
    rewriting.memory_optimization = RewriterConfig.NO_MEM_OPT
    rewriting.disable_tfg_optimizer = True
    rewriting.layout_optimizer = RewriterConfig.OFF
    return config


_TRIES = 5


class Run:
    """Runs a session faster than `Session.run`.

    `Session.run` checks every array. With hundreds of inputs, this takes longer than the graph.
    """

    def __init__(self, session: Any, feeds: Sequence[str], fetches: Sequence[str]) -> None:
        """Prepares the run.

        Args:
          session: the session.
          feeds: names of the tensors to feed.
          fetches: names of the tensors to compute.
        """
        find = session.graph.get_tensor_by_name
        self._session, self._fetches = session, list(fetches)
        self._feeds = {name: find(name)._as_tf_output() for name in feeds}
        self._computed = {
            name: find(name)._as_tf_output() for name in fetches if name not in self._feeds
        }

    def __call__(self, values: Sequence[Any], seconds: float, trace: Any = None) -> list[Any]:
        """Computes the tensors.

        Args:
          values: an array for each tensor to feed, of the tensor's dtype.
          seconds: the time limit. A run that exceeds it on a busy machine, without much use of the
              CPU, is repeated.
          trace: a RunMetadata to fill.

        Raises:
          tf.errors.DeadlineExceededError: the run takes longer than `seconds`.
        """
        for _ in range(_TRIES - 1):
            started = time.process_time()
            try:
                return self._once(values, seconds, trace)
            except tf.errors.DeadlineExceededError:
                if time.process_time() - started > seconds / 2:
                    raise
        return self._once(values, seconds, trace)

    def _once(self, values: Sequence[Any], seconds: float, trace: Any) -> list[Any]:
        options = tf.compat.v1.RunOptions(timeout_in_ms=int(1000 * seconds))
        if trace is not None:
            options.trace_level = options.SOFTWARE_TRACE
        feeds = dict(zip(self._feeds.values(), values, strict=True))
        given = pywrap_tf_session.TF_NewBufferFromString(options.SerializeToString())
        traced = None if trace is None else pywrap_tf_session.TF_NewBuffer()
        session, wanted = self._session, list(self._computed.values())
        session._extend_graph()
        try:
            run = session._call_tf_sessionrun
            computed = session._do_call(run, given, feeds, wanted, [], traced)
            if trace is not None:
                trace.ParseFromString(pywrap_tf_session.TF_GetBuffer(traced))
        finally:
            for buffer in filter(None, (given, traced)):
                pywrap_tf_session.TF_DeleteBuffer(buffer)
        known = {
            **dict(zip(self._feeds, values, strict=True)),
            **dict(zip(self._computed, computed, strict=True)),
        }
        return [known[name] for name in self._fetches]


_LOOPS = ("While", "StatelessWhile", "LoopCond", "Map", "MapDefun")
_SHOWN = 3


def describe_loops(graph: Any, inputs: Mapping[str, str], outputs: Iterable[str]) -> str:
    """Names the loops that the outputs depend on, and the inputs of each; "" if there are none.

    Args:
      graph: a tf.Graph without function calls around the loops.
      inputs: names to tensors.
      outputs: tensors.
    """
    names = {graph.get_tensor_by_name(tensor).op: name for name, tensor in inputs.items()}
    behind = _behind(graph.get_tensor_by_name(tensor).op for tensor in outputs)
    loops = []
    for op in sorted((op for op in behind if op.type in _LOOPS), key=lambda op: str(op.name)):
        read = sorted(names[source] for source in _behind([op]) if source in names)
        loops.append(f"{op.name} ({op.type}) over {', '.join(read) or 'no input'}")
    if not loops:
        return ""
    more = f" and {len(loops) - _SHOWN} more" if len(loops) > _SHOWN else ""
    return f"is a generated number a loop's length? Loops: {'; '.join(loops[:_SHOWN])}{more}"


def _behind(ops: Iterable[Any]) -> set[Any]:
    """The operations that `ops` depend on, including `ops`."""
    found, stack = set[Any](), list(ops)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack += [tensor.op for tensor in op.inputs]
    return found
