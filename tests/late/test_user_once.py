"""The user part runs at one row for every way in which models combine user and item."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from colcast.export.cut import _products

from .conftest import Columns, variable

COLUMNS = {
    "u": (tf.float32, [6]),
    "uid": (tf.int64, []),
    "word": (tf.string, []),
    "x": (tf.float32, [6]),
    "iid": (tf.int64, []),
    "clicked": (tf.int64, [None]),
    "clicked/length": (tf.int64, []),
}
USER = ["u", "uid", "word", "clicked"]


def _table(name: str, ids: Any, width: int = 6) -> Any:
    if ids.dtype == tf.string:
        ids = tf.strings.to_hash_bucket_fast(ids, 20)
    return tf.gather(variable(name, 20, width), tf.math.floormod(ids, 20))


def _dense(name: str, x: Any, units: int) -> Any:
    return tf.nn.bias_add(
        tf.matmul(x, variable(name, x.shape[-1], units)), variable(f"{name}b", units)
    )


def _mlp(x: Any, act: Any = tf.nn.relu) -> Columns:
    return {"score": _dense("last", act(_dense("first", x, 5)), 1)}


def _mean_of_clicked(c: Columns) -> Any:
    mask = tf.sequence_mask(c["clicked/length"], tf.shape(c["clicked"])[1], tf.float32)[:, :, None]
    total = tf.reduce_sum(_table("clicks", c["clicked"]) * mask, axis=1)
    return tf.math.divide_no_nan(total, tf.reduce_sum(mask, axis=1))


def _batch_norm(x: Any) -> Any:
    width = x.shape[-1]
    gamma, beta, mean = (variable(name, width) for name in ("gamma", "beta", "mean"))
    return tf.nn.batch_normalization(x, mean, tf.square(mean) + 0.5, beta, gamma, 1e-3)


def _attention(c: Columns, tensordot: bool) -> Any:
    keys = _table("clicks", c["clicked"])
    query = _table("item", c["iid"])
    shape = tf.shape(keys)
    if tensordot:
        queries = tf.tile(query[:, None, :], [1, shape[1], 1])
    else:
        queries = tf.reshape(tf.tile(query, [1, shape[1]]), [-1, shape[1], 6])
    together = tf.concat([queries, keys, queries - keys, queries * keys], axis=-1)
    together = tf.ensure_shape(together, [None, None, 24])
    if tensordot:
        hidden = tf.nn.sigmoid(tf.tensordot(together, variable("w1", 24, 8), 1) + variable("b1", 8))
        scores = (tf.tensordot(hidden, variable("w2", 8, 1), 1) + variable("b2", 1))[:, :, 0]
    else:
        flat = tf.reshape(together, [-1, 24])
        hidden = tf.nn.sigmoid(_dense("w1", flat, 8))
        scores = tf.reshape(_dense("w2", hidden, 1), [-1, shape[1]])
    mask = tf.sequence_mask(c["clicked/length"], shape[1])
    weights = tf.nn.softmax(tf.where(mask, scores, -1e9 * tf.ones_like(scores)))
    weights = tf.where(mask, weights, tf.zeros_like(weights))
    return tf.squeeze(tf.matmul(weights[:, None, :], keys), 1)


def _after_batch_norm(c: Columns, nested: bool) -> Columns:
    x = tf.concat([c["x"], c["u"]], 1)
    if nested:
        x = tf.concat([_table("t", c["uid"]), tf.nn.relu(x), _table("s", c["iid"])], -1)
    return _mlp(tf.identity(_batch_norm(x)))


def _summed(c: Columns, keepdims: bool) -> Columns:
    x = tf.concat([c["u"], c["x"]], 1) * variable("w", 12) + tf.range(12.0)
    return {"score": tf.reduce_sum(x, axis=1, keepdims=keepdims) + 0.5}


def _several_products(c: Columns) -> Columns:
    x = tf.concat([c["u"], c["x"], c["u"] * 2.0], 1)
    return {"ctr": _dense("a", x, 4), "cvr": tf.nn.tanh(_dense("b", x, 1)), "seen": x}


def _neighbours(c: Columns) -> Columns:
    parts = [c["u"], _table("a", c["uid"]), _table("b", c["word"]), c["x"], c["u"]]
    return {"score": tf.nn.softmax(tf.concat(parts, 1), axis=1)}


def _stacked_fields(c: Columns) -> Columns:
    x = tf.stack([c["u"], _table("a", c["uid"]), c["x"], _table("b", c["iid"])], axis=1)
    return {"score": tf.reduce_sum(tf.matmul(x, x, transpose_b=True), axis=[1, 2])}


def _stacked_first(c: Columns) -> Columns:
    x = tf.stack([c["u"], _table("a", c["uid"]), c["x"]], axis=0)
    return {"score": tf.reduce_sum(tf.square(x), axis=[0, 2])}


def _linear_weights(c: Columns) -> Columns:
    ids = {"a": c["uid"], "b": c["iid"], "c": c["word"]}
    return {"score": tf.add_n([_table(name, column, 1) for name, column in ids.items()])}


def _two_towers(c: Columns) -> Columns:
    user = tf.nn.l2_normalize(_dense("user", tf.nn.relu(_dense("u", c["u"], 8)), 4), axis=1)
    item = tf.nn.l2_normalize(_dense("item", c["x"], 4), axis=1)
    return {"cosine": tf.reduce_sum(user * item, axis=1)}


def _towers_as_matrices(c: Columns) -> Columns:
    user, item = _dense("user", c["u"], 4), _dense("item", c["x"], 4)
    return {"dot": tf.squeeze(tf.matmul(user[:, None, :], item[:, :, None]), [1, 2])}


def _cross_layers(c: Columns, width: int) -> Columns:
    x0 = x = tf.concat([_mean_of_clicked(c), c["u"], c["x"], _table("i", c["iid"])], 1)
    for layer in range(2):
        x = x0 * (tf.matmul(x, variable(f"w{layer}", 24, width)) + variable(f"b{layer}", 24)) + x
    return _mlp(x)


def _sizes_of_inner_dimensions(c: Columns) -> Columns:
    clicked = _table("clicks", c["clicked"])
    depth = tf.cast(tf.shape(clicked)[-1], tf.float32)
    weights = tf.nn.softmax(tf.matmul(clicked, clicked, transpose_b=True) / tf.sqrt(depth))
    return _mlp(tf.concat([tf.reduce_sum(tf.matmul(weights, clicked), axis=1), c["x"]], 1))


def _sparse_lookup(c: Columns) -> Columns:
    mask = tf.sequence_mask(c["clicked/length"], tf.shape(c["clicked"])[1])
    ids = tf.math.floormod(tf.boolean_mask(c["clicked"], mask), 20)
    sparse = tf.SparseTensor(tf.where(mask), ids, tf.shape(c["clicked"], out_type=tf.int64))
    table = variable("clicks", 20, 6)
    clicked = tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="sqrtn")
    return _mlp(tf.concat([clicked, c["x"]], 1))


def _crossed(c: Columns) -> Columns:
    words = tf.strings.join([c["word"], tf.strings.as_string(c["iid"])], "_X_")
    return _mlp(_table("crossed", words))


def _waiting_for_the_user(c: Columns) -> Columns:
    with tf.control_dependencies([tf.nn.relu(c["u"])]):
        kernel = tf.identity(variable("k", 6, 3))
    return {"score": tf.matmul(c["x"], kernel)}


def _text(c: Columns) -> Columns:
    words = tf.strings.split(tf.strings.lower(c["word"]))
    ids = tf.strings.to_hash_bucket_fast(words.values, 20)
    padded = words.with_values(ids).to_tensor(shape=[None, 4])
    return _mlp(tf.concat([tf.reduce_sum(_table("text", padded), 1), c["x"]], 1))


# name -> the model; split products; ops in folders of the late graph, by number
Case = tuple[Callable[[Columns], Columns], int, dict[str, dict[str, int]]]
CASES: dict[str, Case] = {
    "halves that lie together take slices of the kernel": (
        lambda c: _mlp(tf.concat([c["u"], _table("t", c["word"]), c["x"]], 1)),
        1,
        {"expand": {"Tile": 0}, "split": {"Slice": 2, "GatherV2": 0}},
    ),
    "interleaved halves gather rows of the kernel": (
        lambda c: _mlp(
            tf.concat([c["x"], c["u"], _table("t", c["iid"]), _table("w", c["word"])], 1)
        ),
        1,
        {"expand": {"Tile": 0}, "split": {"Slice": 0, "GatherV2": 2}},
    ),
    "batch norm": (lambda c: _after_batch_norm(c, False), 1, {"expand": {"Tile": 0}}),
    "nested concats": (lambda c: _after_batch_norm(c, True), 1, {"expand": {"Tile": 0}}),
    "a transposed kernel": (
        lambda c: {
            "score": tf.matmul(
                tf.concat([c["u"], c["x"]], 1), variable("k", 3, 12), transpose_b=True
            )
        },
        1,
        {},
    ),
    "a sum over features": (lambda c: _summed(c, False), 1, {}),
    "a sum that keeps its dimension": (lambda c: _summed(c, True), 1, {}),
    "several products share the halves": (_several_products, 2, {"split": {"ConcatV2": 1}}),
    "neighbours in a concat": (_neighbours, 0, {"expand": {"Tile": 2}}),
    "stacked fields": (_stacked_fields, 0, {"expand": {"Tile": 1}}),
    "fields stacked before the rows": (_stacked_first, 0, {"expand": {"Tile": 2}}),
    "a sum of linear weights": (
        _linear_weights,
        0,
        {"expand": {"Tile": 0}, "split": {"AddN": 1, "AddV2": 1}},
    ),
    "two towers": (_two_towers, 0, {"expand": {"Tile": 0}, "user": {"MatMul": 2}}),
    "towers multiplied as matrices": (_towers_as_matrices, 0, {"expand": {"Tile": 0}}),
    "cross layers": (lambda c: _cross_layers(c, 1), 1, {"expand": {"Tile": 1}}),
    "cross layers of full matrices": (
        lambda c: _cross_layers(c, 24),
        1,
        {"expand": {"Tile": 1}},
    ),
    "sizes other than the number of rows": (
        _sizes_of_inner_dimensions,
        1,
        {"user": {"Softmax": 1}},
    ),
    "a sparse look-up": (_sparse_lookup, 1, {"user": {"SparseSegmentSqrtN": 1}}),
    "a cross of user and item": (_crossed, 0, {"expand": {"Tile": 1}}),
    "ops that wait for the user": (_waiting_for_the_user, 0, {}),
    "text": (_text, 1, {"expand": {"Tile": 0}, "user": {"StringSplitV2": 1}}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_users_ops_run_once(model: Any, name: str) -> None:
    build, split, ops = CASES[name]
    built = model(build, COLUMNS, USER)
    built.check()
    assert len(built.report.split_products) == split
    for folder, counts in ops.items():
        found = built.ops(folder)
        assert {op: found.count(op) for op in counts} == counts, folder
    assert all(len(shape) < 2 for shape in built.constant_shapes())


@pytest.mark.parametrize("tensordot", [True, False])
def test_attention_over_the_users_history_with_the_item_as_query(
    model: Any, tensordot: bool
) -> None:
    def build(c: Columns) -> Columns:
        return _mlp(tf.concat([_attention(c, tensordot), c["u"], c["x"]], 1))

    built = model(build, COLUMNS, USER)
    built.check(rows=(11,))
    assert len(built.report.split_products) == 2
    assert "ResourceGather" in built.ops("user")
    assert not [t for t in built.report.frontier if t.how == "repeated" and len(t.shape) == 3]


def test_no_kernel_is_gathered_beyond_the_limit(model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_products, "_MOST_GATHERED_BYTES", 100)
    built = model(
        lambda c: _mlp(tf.concat([c["x"], c["u"], _table("t", c["iid"])], 1)),
        COLUMNS,
        USER,
    )
    built.check()
    assert not built.report.split_products
    assert "interleave" in built.report.refused["MatMul"]
    assert built.ops("expand").count("Tile") == 1


def test_sequence_with_time_first_is_read_once(model: Any) -> None:
    def build(c: Columns) -> Columns:
        steps = tf.transpose(tf.reshape(c["u"], [-1, 3, 2]), [1, 0, 2])
        state = tf.zeros([tf.shape(c["u"])[0], 4])
        for number, step in enumerate(tf.unstack(steps, num=3)):
            state = tf.tanh(_dense(f"step{number}", tf.concat([step, state], 1), 4))
        together = tf.concat([steps, tf.tile(c["x"][None, :, :2], [3, 1, 1])], axis=2)
        return {"score": tf.reduce_sum(together, axis=[0, 2]) + _dense("last", state, 1)[:, 0]}

    built = model(build, COLUMNS, USER)
    built.check()
    assert built.ops("user").count("Tanh") == 3
    assert [t.how for t in built.report.frontier if t.shape == (3, 1, 2)] == ["repeated"]


def test_nothing_is_done_to_the_columnar_signature(model: Any) -> None:
    built = model(lambda c: _mlp(tf.concat([c["u"], c["x"]], 1)), COLUMNS, USER)
    before, after = built.before, built.meta_graph
    present = {node.name: node for node in after.graph_def.node}
    assert all(present[node.name] == node for node in before.graph_def.node)
    assert after.signature_def["columnar"] == before.signature_def["columnar"]
    added = present.keys() - {node.name for node in before.graph_def.node}
    assert all(name.startswith("columnar_late/") for name in added)


def test_signature_is_declared_with_one_row_for_the_user(model: Any) -> None:
    built = model(lambda c: _mlp(tf.concat([c["u"], c["x"]], 1)), COLUMNS, USER)
    inputs = built.meta_graph.signature_def["columnar_late"].inputs
    shapes = {name: [d.size for d in info.tensor_shape.dim] for name, info in inputs.items()}
    assert shapes == {
        "u": [1, 6], "uid": [1], "word": [1], "clicked": [1, -1], "clicked/length": [1],
        "x": [-1, 6], "iid": [-1],
    }  # fmt: skip
