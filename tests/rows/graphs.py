"""Small graphs over columns, the rule's verdict on them, and a check by running them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.convert._parse_op import parsed_tensors
from colcast.export.graph._nodes import FlatGraph
from colcast.export.rows import Walk
from colcast.export.rows._independence import Independence, judge, rows_of

v1 = tf.compat.v1
Columns = dict[str, Any]
Build = Callable[[Mapping[str, Any]], Any]

ROWS = 7
_INNER = {  # column -> dtype and shape of a row
    "x": (tf.float32, [4]),
    "y": (tf.float32, [4]),
    "image": (tf.float32, [5, 6, 2]),
    "i": (tf.int64, []),
    "f": (tf.float32, []),
    "s": (tf.string, []),
    "ids": (tf.int64, [None]),
    "ids/length": (tf.int64, []),
    "weights": (tf.float32, [None]),
    "weights/length": (tf.int64, []),
}


def sparse(columns: Mapping[str, Any], name: str) -> Any:
    """A list feature as the parse op returns it."""
    feature = Feature(name=name, kind=Kind.VAR_LEN, dtype=columns[name].dtype.name, shape=())
    return tf.SparseTensor(*parsed_tensors(feature, columns))


def ragged(columns: Mapping[str, Any], name: str) -> Any:
    """A list feature as a ragged tensor."""
    feature = Feature(name=name, kind=Kind.RAGGED, dtype=columns[name].dtype.name, shape=())
    return tf.RaggedTensor.from_row_splits(*parsed_tensors(feature, columns), validate=False)


class Graph:
    """A graph of columns with one output.

    Attributes:
        found: the rule's verdict.
        ops: its op types.
    """

    def __init__(self, build: Build) -> None:
        """Builds the output and applies the rule to it."""
        with tf.Graph().as_default() as graph:
            self._columns = {
                name: v1.placeholder(dtype, [None, *inner], name=name.replace("/", "_"))
                for name, (dtype, inner) in _INNER.items()
            }
            self._output = tf.identity(build(self._columns))
            self._session = v1.Session(graph=graph)
            self._session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            tensors = {name: tensor.name for name, tensor in self._columns.items()}
            meta_graph = v1.train.export_meta_graph(graph=graph)
            given = rows_of(tensors, graph)
            flat = FlatGraph(meta_graph, [self._output.name])
            self.ops = {node.op for node in flat.nodes.values()}
            facts = Walk(flat, self._session, given).facts
            self.found: Independence = judge(facts, {"out": self._output.name})

    def run(self, columns: Columns) -> Any:
        """Computes the output on some rows."""
        return self._session.run(
            self._output, {self._columns[name]: column for name, column in columns.items()}
        )

    def scores_rows_alike(self, seed: int, *, equal_lengths: bool = False) -> bool:
        """Whether each row gets the same output together, alone, in slices and in another order."""
        columns = draw(np.random.default_rng(seed), ROWS, equal_lengths=equal_lengths)
        whole = self.run(columns)
        if whole.shape[:1] != (ROWS,):
            return False
        order = np.random.default_rng(seed).permutation(ROWS)
        alone = np.split(np.arange(ROWS), ROWS)
        for rows in (*np.split(order, [1, 3]), *alone, np.array([0, 0])):
            piece = self.run({name: column[rows] for name, column in columns.items()})
            if len(piece) != len(rows) or not _alike(piece, whole[rows]):
                return False
        return True


def draw(random: np.random.Generator, rows: int, *, equal_lengths: bool = False) -> Columns:
    """Random rows of every column; lists have 0 to 5 values."""
    longest = 5
    lengths = random.integers(0, longest + 1, rows)
    if equal_lengths:
        lengths[:] = 3
    words = np.array([b"red", b"12", b"", b"a b c", "größe".encode()], object)
    return {
        "x": random.normal(size=(rows, 4)).astype(np.float32),
        "y": random.normal(size=(rows, 4)).astype(np.float32),
        "image": random.normal(size=(rows, 5, 6, 2)).astype(np.float32),
        "i": random.integers(0, 4, rows),
        "f": random.normal(size=rows).astype(np.float32),
        "s": words[random.integers(0, len(words), rows)],
        "ids": random.integers(0, 6, (rows, longest)),
        "ids/length": lengths,
        "weights": random.random((rows, longest)).astype(np.float32) + 0.5,
        "weights/length": lengths,
    }


def _alike(given: Any, expected: Any) -> bool:
    """Whether outputs are equal up to rounding; a slice's lists may have less padding."""
    if given.ndim != expected.ndim:
        return False
    inside = expected[tuple(slice(0, size) for size in given.shape)]
    if given.dtype.kind in "fc":
        return bool(np.allclose(given, inside, rtol=1e-5, atol=1e-5, equal_nan=True))
    return bool(np.array_equal(given, inside))
