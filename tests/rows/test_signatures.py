"""A user's list that a graph repeats for each candidate is each candidate's own."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import tensorflow as tf
from colcast.export.graph._signature import Signature
from colcast.export.rows import Independence, candidates

from .graphs import ragged, sparse

v1 = tf.compat.v1
C = Mapping[str, Any]
_USER = {"ids": (tf.int64, [1, None]), "ids/length": (tf.int64, [1])}
TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def verdict(score: Callable[[C, Any], Any]) -> Independence:
    """What the rule says of a signature whose user has a list and one row."""
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        user = {
            name: v1.placeholder(dtype, shape, name=name.replace("/", "_"))
            for name, (dtype, shape) in _USER.items()
        }
        item = v1.placeholder(tf.float32, [None], name="item")
        output = tf.identity(score(user, item))
        tensors = {name: column.name for name, column in user.items()}
        signature = Signature(tensors, {"item": item.name}, {}, {"out": output.name})
        return candidates(v1.train.export_meta_graph(graph=graph), session, signature)


def repeated(column: Any, item: Any) -> Any:
    """A column of one row for each candidate."""
    multiples = tf.concat([tf.shape(item), tf.ones([len(column.shape) - 1], tf.int32)], 0)
    return tf.tile(tf.ensure_shape(column, column.shape), multiples)


def as_sparse(user: C, item: Any) -> Any:
    columns = {name: repeated(column, item) for name, column in user.items()}
    table = tf.constant(TABLE)
    return item * tf.nn.safe_embedding_lookup_sparse(table, sparse(columns, "ids"))[:, 0]


def as_long_as(lengths: Callable[[Any], Any]) -> Callable[[C, Any], Any]:
    """A ragged list, with lengths made of the user's."""

    def score(user: C, item: Any) -> Any:
        columns = {name: repeated(column, item) for name, column in user.items()}
        values = ragged(columns, "ids").values
        return item * _sum_of(values, repeated(lengths(user["ids/length"]), item))

    return score


def _sum_of(ids: Any, lengths: Any) -> Any:
    splits = tf.concat([tf.constant([0], tf.int64), tf.cumsum(lengths)], 0)
    vectors = tf.gather(tf.constant(TABLE), ids)
    lists = tf.RaggedTensor.from_row_splits(vectors, splits, validate=False)
    return tf.reduce_sum(lists, 1)[:, 0]


as_ragged = as_long_as(lambda lengths: tf.maximum(lengths, 0))


@pytest.mark.parametrize("score", [as_sparse, as_ragged, as_long_as(lambda n: n)])
def test_a_repeated_list_is_of_each_candidate(score: Callable[[C, Any], Any]) -> None:
    assert verdict(score) == Independence(rows=True)


@pytest.mark.parametrize(
    "lengths", [lambda n: n + 1, lambda n: tf.maximum(n, 1), lambda n: tf.minimum(n, 0)]
)
def test_what_is_made_of_a_length_is_no_length_of_the_list(lengths: Callable[[Any], Any]) -> None:
    found = verdict(as_long_as(lengths))
    assert not found.rows
    assert found.why_not.startswith("Cumsum (")
