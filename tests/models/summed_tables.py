"""A model whose signatures gather and sum rows of tables in all the ways that lists are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .saving import save_graph, save_version

ROWS = 60
EMPTY = -1000
"""The id of a place in a list that has no value."""
v1 = tf.compat.v1
SPEC = [
    tf.TensorSpec([None, None], tf.int64, name="ids"),
    tf.TensorSpec([None, None], tf.float32, name="weights"),
]
Body = Callable[[Any, Any], Any]


def sparse(ids: Any, weights: Any) -> tuple[Any, Any]:
    """The lists' ids and weights, without empty places."""
    where = tf.where(tf.not_equal(ids, EMPTY))
    shape = tf.shape(ids, tf.int64)
    return tuple(tf.SparseTensor(where, tf.gather_nd(x, where), shape) for x in (ids, weights))


def full(ids: Any, weights: Any) -> tuple[Any, Any]:
    """As `sparse`, with one more place in each row, so that no list is empty."""
    ids = tf.concat([ids, tf.ones_like(ids[:, :1])], 1)
    return sparse(ids, tf.concat([weights, tf.ones_like(weights[:, :1])], 1))


def save(version: Path, seed: int = 0) -> None:
    """Saves signatures that take `ids` and `weights` [N, list] and read tables of their own."""
    random = np.random.default_rng(seed)
    module = tf.Module()
    # This one byte at the start gives all later tensors odd addresses in the file.
    module.aa = tf.Variable(tf.constant([1], tf.int8), name="aa")
    module.tables = {}
    bodies: dict[str, Body] = {}

    def add(name: str, body: Callable[..., Any], *row: int, dtype: Any = tf.float32) -> None:
        values = tf.cast(random.normal(size=[ROWS, *(row or (7,))]), dtype)
        module.tables[name] = table = tf.Variable(values, name=name)
        bodies[name] = lambda ids, weights: body(table, ids, weights)

    def parts(name: str, strategy: str) -> None:
        module.tables[name] = several = [
            tf.Variable(random.normal(size=[ROWS // 3, 5]).astype("f4"), name=f"{name}_{i}")
            for i in range(3)
        ]
        bodies[name] = lambda ids, weights: v1.nn.safe_embedding_lookup_sparse(
            several, sparse(ids, weights)[0], combiner="mean", partition_strategy=strategy
        )

    for combiner in ("sum", "mean", "sqrtn"):

        def safe(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.safe_embedding_lookup_sparse(
                table, sparse(ids, weights)[0], combiner=combiner
            )

        def weighted(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.safe_embedding_lookup_sparse(
                table, *sparse(ids, weights), combiner=combiner, default_id=3
            )

        def fast(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            return tf.nn.embedding_lookup_sparse(
                table, full(ids, weights)[0], None, combiner=combiner, allow_fast_lookup=True
            )

        def of_ragged(table: Any, ids: Any, weights: Any, combiner: str = combiner) -> Any:
            lists = full(ids, weights)[0]
            rows = tf.RaggedTensor.from_value_rowids(
                lists.values, lists.indices[:, 0], lists.dense_shape[0]
            )
            return tf.nn.embedding_lookup_sparse(table, rows, None, combiner=combiner)

        add(f"safe_{combiner}", safe)
        add(f"weighted_{combiner}", weighted, 8)
        add(f"fast_{combiner}", fast, 33)
        add(f"ragged_{combiner}", of_ragged, 1)
    for dtype in (tf.float16, tf.bfloat16, tf.float64):
        add(f"safe_{dtype.name}", safe, 9, dtype=dtype)

    def mean(table: Any, ids: Any, weights: Any) -> Any:
        return tf.nn.embedding_lookup_sparse(table, full(ids, weights)[0], None, combiner="mean")

    def int32(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        lists = tf.SparseTensor(lists.indices, tf.cast(lists.values, tf.int32), lists.dense_shape)
        return tf.nn.embedding_lookup_sparse(table, lists, None, combiner="sum")

    def normed(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        return tf.nn.embedding_lookup_sparse(table, lists, None, combiner="mean", max_norm=0.5)

    def shared(table: Any, ids: Any, weights: Any) -> Any:
        one = safe(table, ids, weights)
        other = tf.nn.safe_embedding_lookup_sparse(
            table, sparse(ids[:, ::2], weights[:, ::2])[0], combiner="sum"
        )
        first = tf.nn.embedding_lookup(table, full(ids, weights)[0].values[:1])
        return tf.concat([one, other, tf.tile(first, [tf.shape(ids)[0], 1])], 1)

    def also_returned(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        distinct, positions = tf.unique(lists.values)
        rows = tf.gather(table, distinct)
        summed = tf.raw_ops.SparseSegmentSum(
            data=rows, indices=positions, segment_ids=lists.indices[:, 0]
        )
        return summed + tf.reduce_sum(rows, 0)

    def counted(table: Any, ids: Any, weights: Any) -> Any:
        lists = sparse(ids, weights)[0]
        distinct, positions = tf.unique(lists.values, tf.int64)
        return tf.raw_ops.SparseSegmentMeanWithNumSegments(
            data=tf.gather(table, distinct),
            indices=positions,
            segment_ids=tf.cast(lists.indices[:, 0], tf.int32),
            num_segments=tf.shape(ids)[0],
        )

    def other_positions(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        distinct, positions = tf.unique(lists.values)
        return tf.raw_ops.SparseSegmentSum(
            data=tf.gather(table, distinct),
            indices=tf.reverse(positions, [0]),
            segment_ids=lists.indices[:, 0],
        )

    def descending(table: Any, ids: Any, weights: Any) -> Any:
        lists = full(ids, weights)[0]
        return tf.raw_ops.SparseSegmentSum(
            data=table, indices=lists.values, segment_ids=-lists.indices[:, 0]
        )

    def in_function(table: Any, ids: Any, weights: Any) -> Any:
        return tf.function(lambda x, y: mean(table, x, y))(ids, weights)

    def in_branch(table: Any, ids: Any, weights: Any) -> Any:
        return tf.cond(
            tf.size(ids) > 6,
            lambda: mean(table, ids, weights),
            lambda: fast(table, ids, weights, "sum"),
        )

    def in_case(table: Any, ids: Any, weights: Any) -> Any:
        return tf.switch_case(
            tf.size(ids) % 2,
            [lambda: mean(table, ids, weights), lambda: safe(table, ids, weights, "sum")],
        )

    def old_gather(table: Any, ids: Any, weights: Any) -> Any:
        ids = tf.where(tf.equal(ids, EMPTY), tf.zeros_like(ids), ids)
        return tf.raw_ops.Gather(params=table.read_value(), indices=ids) * weights[:, :, None]

    for body in (mean, int32, normed, shared, also_returned, counted, other_positions, descending):
        add(body.__name__, body)
    for body in (in_function, in_branch, in_case, old_gather):
        add(body.__name__, body)
    add("cubes", mean, 3, 2)
    parts("div", "div")
    parts("mod", "mod")
    save_version(
        version,
        module,
        {name: tf.function(body, input_signature=SPEC) for name, body in bodies.items()},
    )


def save_partitioned(version: Path, seed: int = 0) -> None:
    """Saves a TensorFlow 1 graph whose table the checkpoint has in three slices."""
    with tf.Graph().as_default(), v1.Session() as session:
        ids, weights = (v1.placeholder(one.dtype, one.shape, one.name) for one in SPEC)
        outputs = {}
        for strategy in ("div", "mod"):
            table = v1.get_variable(
                f"table_{strategy}",
                shape=[ROWS, 6],
                initializer=v1.random_normal_initializer(seed=seed),
                partitioner=v1.fixed_size_partitioner(3),
                use_resource=True,
            )
            outputs[strategy] = v1.nn.safe_embedding_lookup_sparse(
                table, sparse(ids, weights)[0], combiner="sqrtn", partition_strategy=strategy
            )
        session.run(v1.global_variables_initializer())
        signatures = {
            name: v1.saved_model.predict_signature_def(
                {"ids": ids, "weights": weights}, {"output_0": output}
            )
            for name, output in outputs.items()
        }
        save_graph(version, session, signatures)
