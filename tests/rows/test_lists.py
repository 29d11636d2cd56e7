"""What fills the ends of lists: whatever is computed over a list's width names the list."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from .graphs import Graph, draw, ragged, sparse

C = Mapping[str, Any]
Build = Callable[[C], Any]


def dense(c: C, name: str = "weights") -> Any:
    return tf.sparse.to_dense(sparse(c, name))


def rows(c: C) -> Any:
    return tf.shape(c["f"])[0]


def embedded(c: C, name: str) -> Any:
    """Vectors of a list, [rows, longest, 2]."""
    return tf.cast(dense(c, name), tf.float32)[..., None] * tf.constant([1.0, 2.0])


def counted(c: C) -> Any:
    """The number of entries of each row, padding included."""
    width = tf.shape(dense(c))[1]
    number = tf.repeat(tf.range(rows(c)), width)
    return tf.math.unsorted_segment_sum(tf.ones(rows(c) * width), number, rows(c))


def shown(c: C) -> Any:
    """The mask of a list, by the lengths of its values."""
    lengths = ragged(c, "weights").row_lengths()
    return tf.cast(tf.sequence_mask(lengths), tf.float32)


TIMES: dict[str, Build] = {  # 0 times NaN or infinity is NaN
    "sum of products": lambda c: tf.reduce_sum(dense(c) * c["f"][:, None], 1),
    "einsum": lambda c: tf.einsum("rl,rl->r", dense(c), dense(c) + c["f"][:, None]),
    "matmul": lambda c: tf.matmul(dense(c)[:, None], (1.0 / dense(c))[..., None])[:, 0, 0],
    "sequence_mask": lambda c: tf.reduce_sum(shown(c) * c["f"][:, None], 1),
    "maximum of nothing": lambda c: tf.reduce_max(dense(c), 1),
    "mean of nothing": lambda c: tf.reduce_mean(dense(c), 1),
}


@pytest.mark.parametrize("build", TIMES.values(), ids=TIMES)
def test_no_number_that_fills_a_list_is_harmless(build: Build) -> None:
    graph = Graph(build)
    assert graph.found.rows, graph.found.why_not
    assert graph.found.own_length == ("weights",)
    columns = _rows([[2.0], []], f=[np.inf, np.nan])
    alone = graph.run({name: column[1:] for name, column in columns.items()})
    assert not np.array_equal(graph.run(columns)[1:], alone, equal_nan=True)


def test_entries_that_are_counted_with_padding_name_the_list_or_are_refused() -> None:
    found = Graph(counted).found
    assert not found.rows or found.own_length == ("weights",)


def _rows(weights: list[list[float]], f: list[float]) -> dict[str, Any]:
    """Columns with these lists and numbers; all other values are random."""
    columns = draw(np.random.default_rng(0), len(weights))
    columns["weights/length"] = np.array([len(row) for row in weights])
    columns["weights"] = np.zeros((len(weights), max(map(len, weights))), np.float32)
    for number, row in enumerate(weights):
        columns["weights"][number, : len(row)] = row
    return {**columns, "f": np.array(f)}


BESIDE: dict[str, tuple[Build, tuple[str, ...]]] = {
    "two lists side by side": (
        lambda c: tf.reduce_sum(
            tf.nn.softmax(tf.concat([embedded(c, "ids"), embedded(c, "weights")], 2), 1), [1, 2]
        ),
        ("ids", "weights"),
    ),
    "a list with one more entry behind it": (
        lambda c: tf.reduce_max(tf.concat([embedded(c, "ids"), c["x"][:, None, :2]], 1), [1, 2]),
        ("ids",),
    ),
    "an entry before a list": (
        lambda c: tf.concat([c["x"][:, None, :2], embedded(c, "ids")], 1)[:, 0, 0],
        ("ids",),
    ),
    "two lists one after another": (
        lambda c: tf.reduce_sum(tf.concat([dense(c), tf.cast(dense(c, "ids"), tf.float32)], 1), 1),
        ("ids", "weights"),
    ),
    "the first values": (lambda c: tf.reduce_sum(dense(c)[:, :3], 1), ("weights",)),
    "a cut list, filled": (
        lambda c: tf.reduce_sum(
            tf.sparse.to_dense(tf.sparse.slice(sparse(c, "weights"), [0, 0], [rows(c), 3])), 1
        ),
        ("weights",),
    ),
    "a ragged list cut to a size": (
        lambda c: tf.reduce_sum(ragged(c, "weights").to_tensor(shape=[None, 3]), 1),
        (),
    ),
    "a mask over places": (
        lambda c: tf.reduce_sum(
            tf.linalg.band_part(tf.ones([tf.shape(dense(c))[1]] * 2), -1, 0)[None]
            @ embedded(c, "ids"),
            [1, 2],
        ),
        ("ids", "weights"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "lists"), BESIDE.values(), ids=BESIDE)
def test_a_width_that_lists_determine_carries_their_names(
    build: Build, lists: tuple[str, ...]
) -> None:
    graph = Graph(build)
    assert graph.found.rows, graph.found.why_not
    assert graph.found.own_length == lists
    assert all(graph.scores_rows_alike(seed, equal_lengths=bool(lists)) for seed in range(3))


def test_a_refusal_names_the_lists_that_may_differ() -> None:
    def build(c: C) -> Any:
        ids = sparse(c, "ids")
        some = tf.boolean_mask(tf.cast(ids.values, tf.float32), ids.values > 2)
        both = some * sparse(c, "weights").values
        return tf.math.unsorted_segment_sum(both, sparse(c, "weights").indices[:, 0], rows(c))

    why = "cannot tell whether ids and weights are equally long (Mul "
    assert Graph(build).found.why_not.startswith(why)


def test_wrong_lengths_in_two_rows_shift_the_weights_of_a_third() -> None:
    """Alone, the outer rows would be refused, and the inner one is right."""

    def weighted(c: C) -> Any:
        ids, weights = sparse(c, "ids"), sparse(c, "weights")
        return tf.nn.safe_embedding_lookup_sparse(tf.eye(6)[:, :1] + 1, ids, weights, "sum")

    graph = Graph(weighted)
    columns = _rows([[1.0], [2.0], [3.0, 4.0]], f=[0.0] * 3)
    columns["ids/length"] = np.array([2, 1, 1])
    alone = graph.run({name: column[1:2] for name, column in columns.items()})
    assert not np.allclose(graph.run(columns)[1:2], alone)
    assert graph.found.why_not.startswith("cannot tell whether ids and weights are equally long (")


def test_the_columns_named_like_a_lists_are_none_without_the_converters_nodes() -> None:
    """Lengths that a model reads itself say nothing about how wide its lists are."""

    def build(c: C) -> Any:
        mask = tf.sequence_mask(c["weights/length"], dtype=tf.float32)
        return tf.reduce_sum(mask * c["weights"], 1)

    assert not Graph(build).found.rows
