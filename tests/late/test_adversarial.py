"""Models in which rows are not independent: each is exact or refused, never wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export.graph._errors import ExportError

from .conftest import Columns

v1 = tf.compat.v1

COLUMNS = {"u": (tf.float32, [4]), "id": (tf.int64, []), "x": (tf.float32, [4])}
USER = ["u", "id"]


def _score(user: Any, c: dict[str, Any]) -> dict[str, Any]:
    return {"score": tf.reduce_sum(user * c["x"], axis=1, keepdims=True)}


def _count(c: dict[str, Any]) -> Any:
    return tf.cast(tf.shape(c["u"])[0], tf.float32)


def _position(c: dict[str, Any]) -> Any:
    return tf.range(tf.shape(c["u"])[0])


def _mean_over_rows(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"] - tf.reduce_mean(c["u"], axis=0, keepdims=True) + 1.0, c)


def _mean_as_output(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"], c) | {"mean": tf.reduce_mean(c["u"], axis=0)}


def _count_of_rows(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"] * _count(c), c)


def _cumulative_sum(c: dict[str, Any]) -> dict[str, Any]:
    return _score(tf.cumsum(c["u"], axis=0), c)


def _index_into_user(c: dict[str, Any]) -> dict[str, Any]:
    which = tf.cast(tf.math.floormod(c["id"], 4), tf.int32)
    return _score(tf.gather_nd(c["u"], tf.stack([_position(c), which], axis=1))[:, None], c)


def _position_bias(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"] + tf.cast(_position(c), tf.float32)[:, None], c)


def _rows_into_features(c: dict[str, Any]) -> dict[str, Any]:
    folded = tf.reshape(c["u"], [1, -1])
    return _score(tf.reshape(tf.nn.relu(folded), tf.shape(c["u"])), c)


def _softmax_over_candidates(c: dict[str, Any]) -> dict[str, Any]:
    return {"share": tf.nn.softmax(_score(c["u"], c)["score"], axis=0)}


def _user_as_output(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"], c) | {
        "user": tf.nn.relu(c["u"]),
        "id": c["id"],
        "word": tf.strings.as_string(c["id"]),
    }


def _count_as_output(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"], c) | {"count": _count(c), "shape": tf.shape(c["u"])}


def _item_mean(c: dict[str, Any]) -> dict[str, Any]:
    """The product's item side has one row, so the user side must keep N rows."""
    return {"score": tf.reduce_mean(c["x"], axis=0, keepdims=True) * c["u"]}


def _concat_along_rows(c: dict[str, Any]) -> dict[str, Any]:
    together = tf.concat([c["u"], tf.nn.relu(c["u"]), c["x"]], axis=0)
    return {"score": tf.reshape(together, [-1, 3, 4])}


def _rank_of_candidates(c: dict[str, Any]) -> dict[str, Any]:
    return {"best": tf.math.top_k(_score(c["u"], c)["score"][:, 0], k=1).indices}


def _distinct_users(c: dict[str, Any]) -> dict[str, Any]:
    ids, where = tf.unique(c["id"])
    table = tf.constant([[1.0], [2.0], [3.0]])
    return _score(tf.gather(tf.gather(table, tf.math.floormod(ids, 3)), where), c)


def _loop_over_rows(c: dict[str, Any]) -> dict[str, Any]:
    return _score(tf.map_fn(lambda row: row * 2.0, c["u"]), c)


def _condition_on_count(c: dict[str, Any]) -> dict[str, Any]:
    return _score(tf.cond(_count(c) > 5.0, lambda: c["u"], lambda: -c["u"]), c)


def _fixed_seed(c: dict[str, Any]) -> dict[str, Any]:
    return _score(c["u"] + tf.random.stateless_uniform(tf.shape(c["u"]), [1, 2]), c)


def _above_a_limit_never_tried(c: dict[str, Any]) -> dict[str, Any]:
    return _score(tf.where(_count(c) > 150.0, c["u"], -c["u"]), c)


def _cumulative_sum_of_some_users(c: dict[str, Any]) -> dict[str, Any]:
    rare = tf.equal(c["id"], 123456789)[:, None]
    return _score(tf.where(rare, tf.cumsum(c["u"], axis=0), c["u"]), c)


def _squeezed(c: dict[str, Any]) -> dict[str, Any]:
    total = tf.squeeze(tf.reduce_sum(c["u"], axis=1, keepdims=True))
    return {"score": tf.reduce_sum(c["x"], axis=1) + total}


EXACT = [
    _above_a_limit_never_tried, _cumulative_sum_of_some_users, _squeezed, _mean_over_rows,
    _mean_as_output, _count_of_rows, _cumulative_sum, _index_into_user, _position_bias,
    _rows_into_features, _softmax_over_candidates, _user_as_output, _count_as_output, _item_mean,
    _concat_along_rows, _rank_of_candidates, _distinct_users, _loop_over_rows, _condition_on_count,
    _fixed_seed,
]  # fmt: skip


@pytest.mark.parametrize("build", EXACT)
def test_rows_that_depend_on_each_other_are_exact(model: Any, build: Any) -> None:
    model(build, COLUMNS, USER).check()


def test_rare_dependence_between_rows_is_handled_exactly(model: Any) -> None:
    built = model(_cumulative_sum_of_some_users, COLUMNS, USER)
    columns = built.rows(5)
    columns["u"], columns["id"] = columns["u"][:1], np.array([123456789])
    repeated = columns | {name: columns[name].repeat(5, 0) for name in USER}
    expected = built.run("columnar", repeated)["score"]
    np.testing.assert_allclose(built.run("columnar_late", columns)["score"], expected, rtol=1e-4)


def test_feature_of_which_only_zeros_are_known_is_expanded_at_the_input(model: Any) -> None:
    def build(c: dict[str, Any]) -> dict[str, Any]:
        return _score(c["u"], c) | {"sum": tf.reduce_sum(tf.math.floormod(c["id"], 2**62))}

    built = model(build, COLUMNS, USER, only_zero=["id"])
    assert "0 or empty in all generated rows" in built.report.refused["id"]
    columns = built.rows(5)
    columns["u"], columns["id"] = columns["u"][:1], np.array([7])
    assert built.run("columnar_late", columns)["sum"] == 35


@pytest.mark.parametrize("build", [_condition_on_count, _loop_over_rows])
@pytest.mark.parametrize("version", [1, 2])
def test_control_flow_of_both_kinds_stays_at_n_rows(model: Any, build: Any, version: int) -> None:
    enable = v1.enable_control_flow_v2 if version == 2 else v1.disable_control_flow_v2
    enable()
    try:
        built = model(build, COLUMNS, USER)
    finally:
        v1.enable_control_flow_v2()
    built.check()
    control_flow = {"While", "StatelessWhile", "If", "StatelessIf", "Switch", "Merge", "Enter"}
    assert not control_flow & set(built.ops("user"))
    assert "control flow" in " ".join(built.report.refused.values())


def test_a_random_op_that_changes_the_output_is_refused(model: Any) -> None:
    def build(c: dict[str, Any]) -> dict[str, Any]:
        return _score(c["u"] + tf.random.uniform(tf.shape(c["u"])), c)

    with pytest.raises(ExportError, match=r"output 'score' .* differs between two runs"):
        model(build, COLUMNS, USER)


def test_random_op_that_does_not_show_stays_at_n_rows(model: Any) -> None:
    def build(c: dict[str, Any]) -> dict[str, Any]:
        return _score(c["u"] + tf.floor(tf.random.uniform(tf.shape(c["u"]))), c)

    built = model(build, COLUMNS, USER)
    built.check()
    assert "RandomUniform" not in built.ops("user")
    assert "RandomUniform" in built.ops("item")


@pytest.mark.parametrize(("resource", "op"), [(True, "AssignAddVariableOp"), (False, "AssignAdd")])
def test_side_effect_happens_on_every_row(model: Any, resource: bool, op: str) -> None:
    def build(c: dict[str, Any]) -> dict[str, Any]:
        zeros = v1.zeros_initializer()
        rows = v1.get_variable("rows", shape=[], initializer=zeros, use_resource=resource)
        with tf.control_dependencies([rows.assign_add(_count(c))]):
            return _score(tf.identity(c["u"]), c)

    built = model(build, COLUMNS, USER)
    built.check()
    assert op not in built.ops("user")
    assert op in built.ops("item")


def test_assertion_about_both_sides_still_guards_the_output(model: Any) -> None:
    def build(c: dict[str, Any]) -> dict[str, Any]:
        positive = v1.assert_greater_equal(c["x"] + tf.abs(c["u"]), -1e9, message="too negative")
        with tf.control_dependencies([positive]):
            return _score(tf.nn.relu(c["u"]), c)

    built = model(build, COLUMNS, USER)
    built.check()
    assert "Relu" in built.ops("user")
    columns = built.rows(3)
    columns["u"] = columns["u"][:1]
    columns["id"] = columns["id"][:1]
    columns["x"][2] = -1e10
    with pytest.raises(tf.errors.InvalidArgumentError, match="too negative"):
        built.run("columnar_late", columns)


_MANY = 200  # more rows than any trial request has


@pytest.mark.parametrize("user", [["u", "id"], ["x"]], ids=["of_user", "of_items"])
@pytest.mark.parametrize("build", EXACT)
def test_stages_score_as_the_late_signature_or_are_not_written(
    model: Any, build: Callable[[Columns], Columns], user: list[str]
) -> None:
    try:
        built = model(build, COLUMNS, user)
    except ExportError:
        pytest.skip("there is no late signature to compare with")
    report = built.add_stages()
    if not report.written:
        assert report.reason
        return
    columns = built.rows(_MANY)
    for rows in (1, 2, 5, _MANY):
        items = {name: column[:rows] for name, column in columns.items()}
        once = {name: c[:1] if name in user else c for name, c in items.items()}
        states = _run(built, "item", items, rows)
        own = built.run("columnar_user", once)
        first = dict.fromkeys(("row_to_user", "user_state/row"), np.zeros(1, np.int64))
        given = built.run("columnar_pair", {**own, **states, **first})
        for name, value in built.run("columnar_late", once).items():
            if value.dtype.kind == "f":
                np.testing.assert_allclose(given[name], value, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(given[name], value)


def _run(built: Any, stage: str, columns: Columns, rows: int) -> Columns:
    """Runs a stage in two batches."""
    half = (rows + 1) // 2
    batches = [
        built.run(f"columnar_{stage}", {name: c[rows_] for name, c in columns.items()})
        for rows_ in (slice(0, half), slice(half, rows))
        if rows_.start < rows_.stop
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
