"""Graphs of random ops, most of which rearrange rows or lists.

A list of numbers determines a graph: each choice of an op, an operand or an argument uses the next
number, so Hypothesis can shrink a failing graph by dropping numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from .graphs import ragged, sparse

C = Mapping[str, Any]
_MOST_OPS = 12


class Choices:
    """Makes choices by the given numbers, in order; after the last, by 0."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers: Iterator[int] = iter(numbers)
        self.ended = False

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        number = next(self._numbers, None)
        self.ended = self.ended or number is None
        return (number or 0) % count

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]


class Drawing:
    """The tensors made so far, which later ops take as operands."""

    def __init__(self, columns: C, choices: Choices) -> None:
        self.choices = choices
        self.tensors = [
            columns["x"],
            columns["f"],
            columns["i"],
            columns["y"],
            sparse(columns, "ids").values,
            columns["ids/length"],
            tf.sparse.to_dense(sparse(columns, "weights")),
            ragged(columns, "ids").row_splits,
            sparse(columns, "ids").indices,
            tf.strings.to_hash_bucket_fast(columns["s"], 5),
        ]

    def any(self) -> Any:
        """One of the tensors; small numbers choose the newest."""
        return self.tensors[-1 - self.choices.below(len(self.tensors))]

    def float(self) -> Any:
        """One of the tensors, as float32."""
        return tf.cast(self.any(), tf.float32)

    def int(self) -> Any:
        """One of the tensors, as small integers."""
        found = self.any()
        return tf.cast(tf.clip_by_value(tf.cast(found, tf.float32), -9, 9), tf.int32)

    def index(self) -> Any:
        """Integers that are mostly valid positions in any dimension."""
        return tf.abs(self.int()) % self.choices.of([2, 1, 4])

    def axis(self) -> Any:
        """An axis, which a tensor may not have."""
        return self.choices.of([0, -1, 1, 2, -2])

    def size(self) -> Any:
        """A scalar: a constant, or computed from a tensor or its shape."""
        some = self.any()
        return self.choices.of(
            [
                lambda: 2,
                lambda: tf.shape(some)[0],
                lambda: tf.size(some),
                lambda: tf.reduce_max(tf.shape(some)),
                lambda: tf.cast(tf.reduce_sum(tf.cast(some, tf.float32)), tf.int32),
                lambda: 1,
                lambda: -1,
                lambda: 4,
            ]
        )()


def _slice(d: Drawing) -> Any:
    parts = [
        (slice(None), 0),
        (slice(None, 2),),
        (slice(1, None),),
        (slice(None, None, -1),),
        (slice(None, None, 2),),
        (Ellipsis, slice(1, None)),
        (Ellipsis, slice(None, None, -1)),
        (0,),
        (-1,),
        (slice(None), None),
        (None,),
        (slice(None, -1),),
        (slice(None), slice(None, 3)),
    ]
    return d.any()[d.choices.of(parts)]


def _reshape(d: Drawing) -> Any:
    some = d.any()
    first = tf.shape(some)[0]
    shape = d.choices.of(
        [
            lambda: [-1],
            lambda: [-1, 1],
            lambda: [-1, 2],
            lambda: [-1, 4],
            lambda: [first, -1],
            lambda: [-1, first],
            lambda: [2, -1],
            lambda: [1, -1],
            lambda: [first, 2, -1],
            lambda: tf.reverse(tf.shape(some), [0]),
            lambda: tf.shape(d.any()),
            lambda: tf.concat([tf.shape(some)[:1], [-1]], 0),
        ]
    )()
    return tf.reshape(some, shape)


def _segments(d: Drawing) -> Any:
    op = d.choices.of(
        [tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_mean]
    )
    ids = d.index()
    return op(d.float(), ids, d.size())


def _sorted_segments(d: Drawing) -> Any:
    op = d.choices.of([tf.math.segment_sum, tf.math.segment_mean, tf.math.segment_max])
    return op(d.float(), tf.sort(d.index()))


def _branch(d: Drawing) -> Any:
    value, condition = d.float(), tf.cast(d.size(), tf.int32) > 2
    return tf.cond(condition, lambda: value * 2, lambda: tf.nn.softmax(value, 0))


def _sparse(d: Drawing) -> Any:
    some = tf.sparse.from_dense(d.int())
    return d.choices.of(
        [
            lambda: tf.sparse.reduce_sum(some, d.axis()),
            lambda: tf.sparse.to_dense(tf.sparse.reorder(some)),
            lambda: some.values,
            lambda: some.indices[:, 0],
            lambda: tf.sparse.to_dense(tf.sparse.transpose(some)),
            lambda: tf.sparse.to_dense(tf.sparse.reset_shape(some)),
            lambda: tf.sparse.to_dense(tf.sparse.fill_empty_rows(some, 3)[0]),
            lambda: tf.sparse.to_dense(tf.sparse.reshape(some, [-1])),
            lambda: some.dense_shape,
        ]
    )()


def _ragged(d: Drawing) -> Any:
    values, lengths = d.float(), d.index()
    made = d.choices.of(
        [
            lambda: tf.RaggedTensor.from_row_lengths(values, lengths, validate=False),
            lambda: tf.RaggedTensor.from_row_splits(values, d.index(), validate=False),
            lambda: tf.RaggedTensor.from_value_rowids(values, tf.sort(d.index()), validate=False),
            lambda: tf.RaggedTensor.from_tensor(values),
            lambda: tf.RaggedTensor.from_tensor(values, lengths=lengths),
        ]
    )()
    return d.choices.of(
        [
            lambda: made.to_tensor(),
            lambda: tf.reduce_sum(made, axis=1),
            lambda: tf.reduce_mean(made, axis=0),
            lambda: made.row_lengths(),
            lambda: made.flat_values,
            lambda: made.row_splits,
            lambda: made.value_rowids(),
            lambda: made[:, :1].to_tensor(),
            lambda: made[1:].to_tensor(),
            lambda: tf.reverse(made, [0]).to_tensor(),
        ]
    )()


def _embedded(d: Drawing) -> Any:
    table = tf.reshape(tf.range(24.0), [8, 3]) / 7
    ids = tf.sparse.from_dense(d.index())
    return d.choices.of(
        [
            lambda: tf.nn.embedding_lookup(table, d.index()),
            lambda: tf.nn.safe_embedding_lookup_sparse(table, tf.cast(ids, tf.int64)),
            lambda: tf.nn.safe_embedding_lookup_sparse(
                table, tf.cast(ids, tf.int64), combiner="sum"
            ),
            lambda: tf.gather(table, tf.unique(tf.reshape(d.index(), [-1]))[0]),
            lambda: tf.gather(
                tf.gather(table, (u := tf.unique(tf.reshape(d.index(), [-1])))[0]), u[1]
            ),
        ]
    )()


def _looped(d: Drawing) -> Any:
    value, steps = d.float(), tf.cast(d.size(), tf.int32)
    return d.choices.of(
        [
            lambda: tf.map_fn(lambda row: row * 2, value),
            lambda: tf.scan(lambda before, row: before + row, value),
            lambda: tf.while_loop(lambda n, _: n < steps, lambda n, v: (n + 1, v + 1), [0, value])[
                1
            ],
            lambda: tf.vectorized_map(lambda row: row + 1, value),
        ]
    )()


def _scatter(d: Drawing) -> Any:
    values, some = tf.reshape(d.float(), [-1]), d.any()
    first = tf.range(tf.shape(some)[0])
    at = d.choices.of(
        [
            lambda: tf.stack([first, tf.reshape(d.index(), [-1])], 1),
            lambda: first[:, None],
            lambda: d.index()[..., None],
            lambda: tf.reverse(first, [0])[:, None],
            lambda: tf.cast(tf.where(tf.cast(some, tf.float32) > 0), tf.int32),
        ]
    )()
    return d.choices.of(
        [
            lambda: tf.scatter_nd(at, values, [tf.shape(some)[0], 4]),
            lambda: tf.scatter_nd(at, values, tf.shape(some)),
            lambda: tf.scatter_nd(at, d.float(), [d.size()]),
            lambda: tf.tensor_scatter_nd_add(d.float(), at, values),
            lambda: tf.tensor_scatter_nd_max(tf.cast(some, tf.float32), at, values),
        ]
    )()


OPS: list[Callable[[Drawing], Any]] = [
    lambda d: tf.nn.relu(d.float()),
    lambda d: d.float() + d.float(),
    lambda d: d.float() * d.float(),
    lambda d: d.float() - d.choices.of([tf.reduce_mean, tf.reduce_max, tf.reduce_min])(d.float()),
    _slice,
    _reshape,
    lambda d: tf.transpose(d.any()),
    lambda d: tf.transpose(d.any(), d.choices.of([[1, 0], [0, 2, 1], [1, 0, 2], [2, 1, 0]])),
    lambda d: tf.matmul(d.float(), d.float(), transpose_b=bool(d.choices.below(2))),
    lambda d: tf.tensordot(d.float(), tf.ones([4, 3]), 1),
    lambda d: d.choices.of([tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_prod])(
        d.float(), d.axis(), keepdims=bool(d.choices.below(2))
    ),
    lambda d: tf.concat([d.float(), d.float()], d.axis()),
    lambda d: tf.stack([d.float(), d.float()], d.axis()),
    lambda d: d.choices.of([tf.nn.softmax, tf.cumsum, tf.math.cumprod, tf.sort, tf.nn.log_softmax])(
        d.float(), d.axis()
    ),
    lambda d: tf.cumsum(d.any(), exclusive=bool(d.choices.below(2))),
    lambda d: tf.cumsum(d.float(), d.axis(), reverse=True),
    lambda d: tf.argsort(d.float(), d.axis()),
    lambda d: tf.argmax(d.float(), d.axis()),
    lambda d: tf.math.top_k(d.float(), d.size())[d.choices.below(2)],
    lambda d: tf.gather(d.any(), d.index(), axis=d.choices.of([0, 1])),
    lambda d: tf.gather(d.any(), d.index(), batch_dims=1, axis=1),
    lambda d: tf.gather_nd(d.any(), d.index()[..., None]),
    lambda d: tf.gather_nd(d.any(), d.index()),
    lambda d: tf.reverse(d.any(), [d.axis()]),
    lambda d: tf.roll(d.any(), d.size(), d.axis()),
    lambda d: tf.tile(d.float()[:, None], [1, d.size(), 1]),
    lambda d: tf.tile(d.float(), [d.size()] + [1] * (d.choices.below(3))),
    lambda d: tf.repeat(d.any(), d.size(), d.axis()),
    lambda d: tf.repeat(d.any(), d.index(), 0),
    lambda d: tf.expand_dims(d.any(), d.axis()),
    lambda d: tf.squeeze(d.any(), [d.axis()]),
    lambda d: tf.broadcast_to(d.float(), tf.shape(d.any())),
    lambda d: tf.one_hot(d.index(), d.choices.of([4, 3]), axis=d.choices.of([-1, 0])),
    lambda d: tf.sequence_mask(d.index(), dtype=tf.float32),
    lambda d: tf.sequence_mask(d.index(), d.size(), dtype=tf.float32),
    lambda d: tf.where(d.float() > d.float(), d.float(), d.float()),
    lambda d: tf.where(d.float() > 0),
    lambda d: tf.boolean_mask(d.float(), d.float() > 0),
    lambda d: tf.boolean_mask(d.float(), tf.linalg.band_part(tf.ones_like(d.float()), 1, 0) > 0),
    lambda d: tf.map_fn(lambda row: tf.reduce_sum(row) + tf.cast(d.size(), tf.float32), d.float()),
    lambda d: tf.linalg.triangular_solve(d.float(), d.float()),
    lambda d: tf.math.bincount(tf.reshape(d.index(), [-1]), minlength=d.size(), maxlength=d.size()),
    lambda d: tf.unique(tf.reshape(d.index(), [-1]))[d.choices.below(2)],
    lambda d: tf.unique_with_counts(tf.reshape(d.index(), [-1])).count,
    _segments,
    _sorted_segments,
    _branch,
    _sparse,
    _ragged,
    _embedded,
    _looped,
    lambda d: tf.range(d.size()),
    lambda d: tf.fill(tf.shape(d.any())[:1], 1.5),
    lambda d: tf.zeros_like(d.float()),
    lambda d: tf.shape(d.any()),
    lambda d: tf.shape(d.any())[0],
    lambda d: tf.size(d.any()),
    lambda d: tf.split(d.any(), 2, d.axis())[d.choices.below(2)],
    lambda d: tf.unstack(d.any(), axis=d.axis())[0],
    lambda d: tf.pad(d.float(), [[1, 0]] + [[0, 0]] * d.choices.below(3)),
    lambda d: tf.pad(d.float(), [[0, 0], d.choices.of([[1, 0], [0, 2]])]),
    lambda d: tf.tensor_scatter_nd_update(d.float(), d.index()[..., None], d.float()),
    _scatter,
    lambda d: tf.dynamic_partition(d.float(), d.index(), 4)[d.choices.below(4)],
    lambda d: tf.linalg.band_part(d.float(), 1, 0),
    lambda d: tf.linalg.diag(d.float()),
    lambda d: tf.linalg.diag_part(d.float()[:, None] * d.choices.of([1.0, d.float()[..., None]])),
    lambda d: tf.searchsorted(
        d.choices.of([tf.sort, tf.cumsum])(tf.nn.relu(d.float()), d.axis()), d.float()
    ),
    lambda d: tf.math.bincount(tf.reshape(d.index(), [-1])),
    lambda d: tf.math.bincount(d.index(), axis=-1, minlength=3, maxlength=3),
    lambda d: tf.math.l2_normalize(d.float(), d.axis()),
    lambda d: tf.einsum(
        d.choices.of(["ab,bc->ac", "ab,cb->ac", "ab->ba", "ab,ab->a", "ab,ab->b", "abc,ab->ac"]),
        *[d.float() for _ in range(1 + d.choices.below(2))],
    ),
    lambda d: tf.math.in_top_k(d.index(), d.float(), 1),
    lambda d: tf.math.invert_permutation(tf.argsort(d.float())),
    lambda d: tf.reverse_sequence(d.float(), d.index(), seq_axis=1),
    lambda d: tf.nn.moments(d.float(), [d.axis()])[d.choices.below(2)],
    lambda d: tf.space_to_batch(d.float(), [1], [[0, 0]]),
    lambda d: tf.nn.conv1d(d.float()[..., None], tf.ones([2, 1, 1]), 1, "SAME"),
    lambda d: tf.nn.conv1d(d.float()[None], tf.ones([2, 4, 1]), 1, "SAME"),
    lambda d: tf.strings.to_number(tf.strings.reduce_join(tf.strings.as_string(d.index()), -1)),
    lambda d: tf.strings.to_hash_bucket_fast(
        tf.strings.reduce_join(tf.strings.as_string(d.int()), d.axis()), 7
    ),
]


def build(columns: C, numbers: Sequence[int]) -> Any:
    """Builds a graph and returns its last tensor; skips ops that TensorFlow refuses."""
    choices = Choices(numbers)
    drawing = Drawing(columns, choices)
    for _ in range(_MOST_OPS):
        op = choices.of(OPS)
        if choices.ended:
            break
        try:
            made = op(drawing)
        except (ValueError, TypeError, IndexError, tf.errors.OpError):
            continue
        drawing.tensors.append(made)
    return drawing.tensors[-1]
