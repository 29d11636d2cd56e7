"""Three stages: states, computed in any batch, give the late signature's scores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from .conftest import Columns, Staged, variable

COLUMNS = {
    "age": (tf.float32, [6]),
    "word": (tf.string, []),
    "clicked": (tf.int64, [None]),
    "clicked/length": (tf.int64, []),
    "price": (tf.float32, [6]),
    "item": (tf.int64, []),
    "position": (tf.float32, [1]),
}
USER = ["age", "word", "clicked"]
CONTEXT = ["position"]
ROWS = ("row_to_user", "user_state/row")


def _table(name: str, ids: Any, width: int = 6) -> Any:
    if ids.dtype == tf.string:
        ids = tf.strings.to_hash_bucket_fast(ids, 20)
    return tf.gather(variable(name, 20, width), tf.math.floormod(ids, 20))


def _network(x: Any) -> Columns:
    hidden = tf.nn.relu(tf.matmul(x, variable("first", x.shape[-1], 16)) + variable("bias", 16))
    return {"score": tf.matmul(hidden, variable("last", 16, 1))}


def _split_product(c: Columns) -> Columns:
    return _network(tf.concat([c["age"], _table("w", c["word"]), c["price"]], 1))


def _two_towers(c: Columns) -> Columns:
    user = tf.nn.tanh(tf.matmul(c["age"], variable("u", 6, 4)))
    item = tf.nn.tanh(tf.matmul(_table("i", c["item"]), variable("i2", 6, 4)))
    return {"score": tf.reduce_sum(user * item, 1)}


def _cross(c: Columns) -> Columns:
    x0 = x = tf.concat([c["age"], c["price"], _table("w", c["word"])], 1)
    for layer in range(2):
        x = x0 * tf.matmul(x, variable(f"w{layer}", 18, 1)) + x
    return _network(x)


def _attention(c: Columns) -> Columns:
    keys = _table("keys", c["clicked"])
    query = tf.tile(_table("query", c["item"])[:, None, :], [1, tf.shape(keys)[1], 1])
    together = tf.concat([query, keys, query * keys], axis=-1)
    hidden = tf.nn.sigmoid(tf.tensordot(together, variable("w1", 18, 8), 1))
    scores = tf.tensordot(hidden, variable("w2", 8, 1), 1)[:, :, 0]
    mask = tf.sequence_mask(c["clicked/length"], tf.shape(keys)[1])
    weights = tf.nn.softmax(tf.where(mask, scores, -1e9 * tf.ones_like(scores)))
    weights = tf.where(mask, weights, tf.zeros_like(weights))
    history = tf.squeeze(tf.matmul(weights[:, None, :], keys), 1)
    return _network(tf.concat([history, c["age"], c["price"]], 1))


def _with_context(c: Columns) -> Columns:
    return _network(tf.concat([c["age"], c["price"], c["position"]], 1))


def _normalised_with_context(c: Columns) -> Columns:
    x = tf.concat([c["position"], c["price"], _table("i", c["item"])], 1)
    scale, shift = variable("gamma", 13) + 1.0, variable("beta", 13)
    items = tf.matmul(x * scale + shift, variable("items", 13, 8))
    return _network(tf.concat([items, c["age"]], 1))


CONTEXT_MODELS = [_with_context, _normalised_with_context]
MODELS = [_split_product, _two_towers, _cross, _attention, *CONTEXT_MODELS]


def _stages(model: Any, build: Callable[[Columns], Columns], **options: Any) -> Staged:
    return Staged(model(build, COLUMNS, USER), **options)


@pytest.mark.parametrize("build", MODELS)
def test_states_of_users_and_items_score_as_the_model_itself(model: Any, build: Any) -> None:
    context = CONTEXT if build in CONTEXT_MODELS else ()
    stages = _stages(model, build, context=context)
    assert stages.report.written, stages.report.reason
    for users in (1, 1, 1, 30):
        stages.check(40, {"user": users}, stages.built.rows(40))
    if build is _normalised_with_context:
        assert [state.shape for state in stages.report.item_states] == [(1, 8)]


def _interleaved_items(c: Columns) -> Columns:
    ids = [tf.gather(variable(f"t{k}", 20, 6), tf.math.floormod(c["item"] + k, 20)) for k in (1, 2)]
    return _network(tf.concat([c["price"], c["age"], ids[0], c["position"], ids[1]], 1))


def test_the_items_half_of_a_product_with_context_is_a_state(model: Any) -> None:
    stages = _stages(model, _interleaved_items, context=CONTEXT)
    assert stages.report.written, stages.report.reason
    assert [state.shape for state in stages.report.item_states] == [(1, 16)]
    with tf.Graph().as_default():
        # The import fails if the graph lacks a node that another one reads.
        tf.import_graph_def(stages.built.meta_graph.graph_def)
    stages.check(12, {"user": 3}, stages.built.rows(12))


def test_keys_of_attention_are_states_of_any_length(model: Any) -> None:
    report = _stages(model, _attention).report
    assert (1, None, 6) in [state.shape for state in report.user_states]


@pytest.mark.parametrize(("units", "users_per_run"), [(16, "many"), (2400, "one")])
def test_states_that_are_large_to_copy_take_one_user_per_run(
    model: Any, units: int, users_per_run: str
) -> None:
    def product(c: Columns) -> Columns:
        user = tf.nn.tanh(tf.matmul(c["age"], variable("u", 6, units)))
        item = tf.nn.tanh(tf.matmul(c["price"], variable("i", 6, units)))
        return {"score": tf.reduce_sum(user * item, 1)}

    report = _stages(model, product).report
    assert report.users_per_run == users_per_run
    if users_per_run == "one":
        assert report.why_one.startswith("gathering would copy 9,600 bytes per candidate")


def test_an_op_over_all_candidates_runs_with_the_pair(model: Any) -> None:
    def listwise(c: Columns) -> Columns:
        price = tf.nn.softmax(c["price"], axis=0)
        return {"score": tf.reduce_sum(c["age"] * price, 1)}

    stages = _stages(model, listwise)
    assert stages.report.written
    assert stages.report.users_per_run == "one"
    assert "Softmax" in " ".join(stages.report.not_states)
    stages.check(9, {}, stages.built.rows(9))


def test_a_state_may_depend_on_the_longest_list_which_the_record_names(model: Any) -> None:
    def mean_with_padding(c: Columns) -> Columns:
        mean = tf.reduce_mean(_table("keys", c["clicked"]), 1)
        return {"score": tf.reduce_sum(c["age"] * mean * c["price"], 1)}

    built = model(mean_with_padding, COLUMNS, ["age"])
    report = built.add_stages()
    assert report.written
    assert report.independence["columnar_item"].own_length == ("clicked",)
    assert report.independence["columnar_pair"].own_length == ()
    assert "columnar_pair/late/item/Mean:0" in [state.tensor for state in report.item_states]


def test_assertions_hold_in_one_of_the_stages(model: Any) -> None:
    def build(c: Columns) -> Columns:
        known = tf.compat.v1.assert_less(c["item"] % 7, c["item"] % 7 + 1, message="item")
        young = tf.compat.v1.assert_less(c["age"], 1e9, message="too old")
        with tf.control_dependencies([known, young]):
            return _two_towers({name: tf.identity(column) for name, column in c.items()})

    stages = _stages(model, build)
    assert stages.report.written, stages.report.reason
    columns = stages.built.rows(3)
    columns["age"][1, 2] = 1e10
    rows = {"user_state/row": np.arange(3), "row_to_user": np.arange(3)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="too old"):
        stages.run("pair", {**rows, **stages.run("user", columns), **stages.run("item", columns)})


def test_without_user_features_there_are_no_stages(model: Any) -> None:
    report = model(_two_towers, COLUMNS, []).add_stages()
    assert (report.written, report.reason) == (False, "no feature is the user's")
