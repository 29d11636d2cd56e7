"""The rule on random graphs: rows are independent wherever it says so."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from . import random_graphs
from .graphs import Build, Graph, sparse
from .random_graphs import C, Choices

# Most random graphs over lists mask padding somewhere; the rule must judge whether that suffices.
_MOST_OPS = 6


class Lists:
    """A list, whose tensor [rows, longest] each op replaces, and tensors that belong to it."""

    def __init__(self, columns: C, choices: Choices) -> None:
        """Starts with the ids, padded with a random value."""
        self.choices = choices
        self.columns = columns
        ids = sparse(columns, "ids")
        self.there = tf.sparse.to_dense(ids, -1) >= 0
        self.mask = tf.cast(self.there, tf.float32)
        self.now = tf.cast(tf.sparse.to_dense(ids, choices.of([0, -1, 3])), tf.float32)

    @property
    def place(self) -> Any:
        """The positions 0, 1, 2 and so on."""
        return tf.cast(tf.range(tf.shape(self.now)[1]), tf.float32)[None]

    @property
    def own(self) -> Any:
        """One number per row, [rows, 1]."""
        return self.columns["f"][:, None]

    @property
    def mean(self) -> Any:
        """The mean of each row's list; an empty list may give any value."""
        count = tf.reduce_sum(self.mask, 1, keepdims=True)
        least = self.choices.of([0.0, 1.0, 1e-6])
        return tf.reduce_sum(self.now * self.mask, 1, keepdims=True) / tf.maximum(count, least)

    @property
    def low(self) -> Any:
        """A low score that hides padding in a softmax."""
        return self.choices.of([-1e9, -1e6, -1e4, -tf.float32.max, -float("inf")])


OPS: list[Callable[[Lists], Any]] = [
    lambda d: d.now * d.mask,
    lambda d: tf.where(d.there, d.now, d.choices.of([0.0, 1.0])),
    lambda d: tf.where(d.there, d.now, d.low),
    lambda d: d.now + (1 - d.mask) * d.low,
    lambda d: tf.nn.softmax(d.now),
    lambda d: tf.nn.log_softmax(d.now),
    lambda d: d.now + d.place,
    lambda d: d.now * d.own,
    lambda d: d.now - d.mean,
    lambda d: d.now / (d.now + d.choices.of([0.0, 1.0])),
    lambda d: d.now / tf.reduce_sum(d.now, 1, keepdims=True),
    lambda d: d.choices.of(
        [tf.exp, tf.math.log, tf.math.rsqrt, tf.sqrt, tf.sigmoid, tf.square, tf.nn.relu, tf.sign]
    )(d.now),
    lambda d: tf.math.log(tf.abs(d.now) + 1) * d.mask,
    lambda d: d.choices.of([tf.cumsum, tf.nn.l2_normalize, tf.math.divide_no_nan])(
        d.now, d.choices.of([1, 1.0])
    ),
    lambda d: tf.cumsum(d.now, 1, reverse=True),
    lambda d: d.now * tf.cast(d.now > d.choices.of([0.0, -1.0]), tf.float32),
    lambda d: tf.pad(d.now, [[0, 0], [0, 1]])[:, 1:],
    lambda d: tf.einsum("rl,rm->rm", d.now * d.mask, d.now),
    lambda d: tf.maximum(d.now, d.choices.of([0.0, 1.0])),
]

_ENDS: list[Callable[[Any, Lists], Any]] = [
    lambda now, d: tf.reduce_sum(now, 1),
    lambda now, d: tf.reduce_sum(now * d.mask, 1),
    lambda now, d: tf.einsum("rl,rl->r", now, d.now),
    lambda now, d: tf.matmul(now[:, None], (d.now + d.place)[..., None])[:, 0, 0],
    lambda now, d: tf.reduce_max(now, 1),
    lambda now, d: tf.reduce_prod(tf.where(d.there, now, 1.0), 1),
]


def lists_built(columns: C, numbers: Sequence[int]) -> Any:
    """Computes one number per row from its list; skips ops that TensorFlow refuses."""
    choices = Choices(numbers)
    lists = Lists(columns, choices)
    for _ in range(_MOST_OPS):
        op = choices.of(OPS)
        if choices.ended:
            break
        try:
            lists.now = op(lists)
        except (ValueError, TypeError, tf.errors.OpError):
            continue
    made = choices.of(_ENDS)(lists.now, lists)
    return tf.clip_by_value(made, -1e6, 1e6)


_SEEDS = 3  # each graph runs on rows from this many seeds


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=40))
@example([0, 0, 1, 0, 0, 0])
def test_reported_independence_is_real(numbers: Sequence[int]) -> None:
    _check(lambda columns: random_graphs.build(columns, numbers))


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=24))
def test_reported_independence_of_other_lists_is_real(numbers: Sequence[int]) -> None:
    _check(lambda columns: lists_built(columns, numbers))


def _check(build: Build) -> None:
    graph = Graph(build)
    if not graph.found.rows:
        assert graph.found.why_not
        return
    for seed in range(_SEEDS):
        try:
            alike = graph.scores_rows_alike(seed, equal_lengths=bool(graph.found.own_length))
        except tf.errors.OpError:  # TensorFlow refuses such rows
            assume(False)
        assert alike, graph.ops
