"""Runs nodes on a few entries to learn their result for all entries."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph, GraphDef, NodeDef, data_inputs, producer
from colcast.export.rows._facts import Fact, Kind, axis, fixed, has_rows, is_counted, labels
from colcast.export.rows._op import TABLE

Evaluate = Callable[[str, Mapping[str, Any]], Any]
"""Computes a tensor's numbers, given values of other tensors; None if that fails."""

OF_SHAPES = ("OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike")
"""Ops that read only their input's shape or dtype, not its values."""

_ROWS = 2  # rows of each domain
_MOST = 64  # maximum number of entries to remember


class Trials:
    """Runs nodes of a session's graph."""

    def __init__(
        self, nodes: FlatGraph, graph: tf.Graph, given: Mapping[str, Fact], evaluate: Evaluate
    ) -> None:
        """Prepares trials.

        Args:
            nodes: the nodes.
            graph: the tf.Graph with the nodes.
            given: facts about the inputs, by tensor.
            evaluate: computes a tensor.
        """
        self._nodes = nodes
        self._graph = graph
        self._given = given
        self._evaluate = evaluate

    def compute(self, node: NodeDef, values: Sequence[Any]) -> Any:
        """Runs an op on one entry of each input; None if that fails."""
        trial = NodeDef()
        trial.CopyFrom(node)
        trial.name = "trial"
        for name in [name for name in trial.attr if name.startswith("_")]:
            del trial.attr[name]
        sources = data_inputs(node)
        trial.input[:] = [f"given_{number}" for number in range(len(sources))]
        try:
            tensors = [self._graph.get_tensor_by_name(source) for source in sources]
            with self._graph.as_default():
                given = {
                    name: tensor if value is TABLE else tf.constant(value, tensor.dtype)
                    for name, tensor, value in zip(trial.input, tensors, values, strict=True)
                }
                (made,) = tf.import_graph_def(
                    GraphDef(node=[trial]), input_map=given, return_elements=["trial:0"]
                )
        except (KeyError, TypeError, ValueError):  # a function's node, or dtypes that do not fit
            return None
        value = self._evaluate(made.name, {})
        return None if value is None or np.size(value) != 1 else np.reshape(value, [-1])[0]

    def measured(self, tensor: str, fact: Fact) -> Fact:
        """Adds the sizes that the graph leaves unknown to a fact, if the tensor reads no input."""
        open_ = fact.axes is None or labels(fact.axes)
        if fact.kind is not Kind.FIXED or not open_:
            return fact
        value = self._evaluate(tensor, {})
        if not isinstance(value, np.ndarray):
            return fact
        return fixed(tuple(map(axis, value.shape)), value if value.size <= _MOST else None)

    def of_one_row(self, tensor: str, fact: Fact) -> Any:
        """A row's entries, if they are the same in all rows of all runs; None if unknown.

        No row affects them, so the trial feeds arbitrary rows.
        """
        factors = [factor for each in fact.axes or () for factor in each]
        if fact.kind is not Kind.FIXED or fact.lengths or not factors:
            return None
        if not has_rows([tuple(factors[:1])]) or not is_counted(tuple(factors[1:])):
            return None
        if not self._is_of_constants(tensor):
            return None
        value = self._evaluate(tensor, dict(filter(None, map(self._feed, self._given))))
        if value is None or value.size != _ROWS * math.prod(map(_size, factors[1:])):
            return None
        first, *others = np.reshape(value, [_ROWS, -1])
        return first if all(np.array_equal(first, other) for other in others) else None

    def _is_of_constants(self, tensor: str) -> bool:
        """Whether retraining cannot change the tensor, because it reads no variable."""
        seen, waiting = set[str](), [producer(tensor)]
        while waiting:
            name = waiting.pop()
            node = self._nodes.nodes.get(name)
            if node is None or self._nodes.op_defs.get(node.op).is_stateful:
                return False
            sources = map(producer, () if node.op in OF_SHAPES else data_inputs(node))
            waiting += [source for source in sources if source not in seen]
            seen.add(name)
        return True

    def _feed(self, tensor: str) -> tuple[str, Any] | None:
        """A tensor to feed, and its values."""
        fact, dtype = self._given[tensor], self._graph.get_tensor_by_name(tensor).dtype
        if fact.kind is Kind.SIZES or fact.axes is None or not dtype.is_numpy_compatible:
            return None
        shape = [math.prod(map(_size, each)) for each in fact.axes]
        return tensor, np.zeros(shape, dtype.as_numpy_dtype) if dtype != tf.string else np.full(
            shape, b"", object
        )


def _size(factor: int | str) -> int:
    if isinstance(factor, int):
        return factor
    return _ROWS if factor.startswith("rows:") else 1
