"""Three stages: states, computed in any batch, give the late signature's scores."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from ..models.ranker import ITEMS
from .conftest import Columns, Run, Staged, variable

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


def test_a_last_stage_whose_rows_may_meet_takes_one_user_per_run(model: Any) -> None:
    def share(c: Columns) -> Columns:
        return {"share": tf.nn.softmax(tf.reduce_sum(c["age"] * c["price"], 1), axis=0)}

    report = _stages(model, share).report
    assert report.users_per_run == "one"
    assert report.why_one.startswith("rows may affect each other: ")


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


JOINED = "user_state_row_must_be_0_to_U_minus_1_of_one_request"
NO_USER = "row_to_user_must_be_0_to_U_minus_1"
AGES = np.arange(5) * 13


def _user(ages: Sequence[int]) -> Columns:
    words = np.array([[b"red", b"blue"]] * len(ages), object)
    columns = {"user_age": np.array(ages, np.int64), "user_words": words}
    return columns | {"user_words/length": np.full(len(ages), 2)}


def _items(count: int) -> Columns:
    items = ITEMS[:count]
    return {
        "item_id": np.array([item["item_id"] for item in items]),
        "item_price": np.array([item["item_price"] for item in items], np.float32),
    }


def _score(run: Run, users: int, items: int, **rows: Sequence[int]) -> Any:
    """Scores the first `items` items for the first `users` users."""
    states = run("columnar_user", _user(AGES[:users])) | run("columnar_item", _items(items))
    given = {key.replace("__", "/"): np.array(row, np.int64) for key, row in rows.items()}
    return run("columnar_pair", states | given)["score"]


@pytest.mark.parametrize(
    ("users", "rows"),
    [
        (1, [0]),
        (3, [0, 1, 2]),
        (3, [0]),  # the input's default, which no joined request has
        (5, [0, 1, 2, 3, 4]),
        (5, [0]),
    ],
)
@pytest.mark.parametrize("items", [1, 5])
def test_users_of_one_request_are_scored(
    rewritten: Run, users: int, rows: list[int], items: int
) -> None:
    whose = [(3 * row + 1) % users for row in range(items)]
    given = _score(rewritten, users, items, user_state__row=rows, row_to_user=whose)
    for row, user in enumerate(whose):
        late = rewritten("columnar_late", _user(AGES[[user]]) | _items(items))["score"]
        np.testing.assert_allclose(given[row], late[row], rtol=1e-5)


@pytest.mark.parametrize(
    "rows",
    [
        [0, 0],  # two requests that send the same user
        [0, 0, 0, 0, 0],  # one request, padded or with its state repeated
        [0, 1, 0, 1, 2],  # two requests of several users
        [0, 1, 2, 0, 0],  # one request of three users, padded
        [3, 4],  # the second half of a split request
        [1],  # one user, numbered like the second of several
        [1, 0],
    ],
)
def test_users_of_several_requests_are_refused(rewritten: Run, rows: list[int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=JOINED):
        _score(rewritten, len(rows), len(rows), user_state__row=rows, row_to_user=[0] * len(rows))


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_a_row_that_names_no_user_is_refused(rewritten: Run, users: int, wrong: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=NO_USER) as error:
        _score(rewritten, users, 4, row_to_user=[0, 0, wrong, 0])
    assert f"indices[2] = {wrong} is not in [0, {users})" in error.value.message
