"""The exact signature is bit-identical; the late one refuses several users' rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError
from colcast.export.cut._add_late import add_late_signature
from colcast.export.graph._ops import EXACT
from tensorflow.core.protobuf import saved_model_pb2

from .conftest import Columns, Run, variable

COLUMNS = {
    "age": (tf.float32, [6]),
    "id": (tf.int64, []),
    "word": (tf.string, []),
    "price": (tf.float32, [6]),
}
USER = ["age", "id", "word"]


def _looked_up(c: Columns) -> Any:
    words = tf.gather(variable("words", 20, 8), tf.strings.to_hash_bucket_fast(c["word"], 20))
    ids = tf.gather(variable("ids", 20, 8), tf.math.floormod(c["id"], 20))
    return tf.concat([words, ids], 1)


def _network(x: Any) -> Columns:
    hidden = tf.nn.sigmoid(tf.matmul(x, variable("first", x.shape[-1], 33)))
    return {"score": tf.matmul(hidden, variable("last", 33, 1))}


def _tables(c: Columns) -> Columns:
    return _network(tf.concat([_looked_up(c), c["price"]], 1))


def _scaled(c: Columns) -> Columns:
    age = (c["age"] - variable("mean", 6)) / (1.0 + tf.square(variable("deviation", 6)))
    return _network(tf.concat([tf.clip_by_value(age, -2.0, 2.0), c["price"]], 1))


def _interleaved(c: Columns) -> Columns:
    return _network(tf.concat([c["age"] * 3.0, c["price"], _looked_up(c)], 1))


def _elementwise(c: Columns) -> Columns:
    return _network(tf.maximum(c["age"] * 0.7, c["price"]) * c["price"])


def _stacked(c: Columns) -> Columns:
    stacked = tf.stack([c["age"] + 1.0, tf.abs(c["age"]), c["price"]], axis=1)
    return _network(tf.reshape(stacked, [-1, 18]))


def _wordy(c: Columns) -> Columns:
    crossed = tf.strings.join([c["word"], tf.strings.as_string(c["id"])], "/")
    crossed = tf.strings.to_hash_bucket_fast(crossed, 50)
    return _network(tf.concat([tf.gather(variable("crossed", 50, 8), crossed), c["price"]], 1))


def _tower(c: Columns) -> Columns:
    tower = tf.nn.tanh(tf.matmul(_looked_up(c), variable("tower", 16, 6)))
    return {"score": tf.reduce_sum(tower * c["price"], 1)}


@pytest.mark.parametrize(
    "build", [_tables, _scaled, _interleaved, _elementwise, _stacked, _wordy, _tower]
)
def test_every_output_is_equal_to_the_last_bit(
    model: Any, build: Callable[[Columns], Columns]
) -> None:
    built = model(build, COLUMNS, USER, exact=True)
    built.check()
    assert built.report.user_ops > 0
    assert set(built.ops("user")) <= EXACT
    assert not built.ops("split")
    assert {d for by_output in built.report.proof.values() for d in by_output.values()} == {0.0}


def test_look_ups_run_once_and_meet_the_items_in_one_repetition(model: Any) -> None:
    built = model(_tables, COLUMNS, USER, exact=True)
    assert built.ops("user").count("ResourceGather") == 2
    assert built.ops("expand").count("Tile") == 1


def test_ops_that_may_round_differently_run_at_n_rows_and_are_named(model: Any) -> None:
    built = model(_tower, COLUMNS, USER, exact=True)
    assert "MatMul" in built.ops("item")
    assert built.report.refused["MatMul"] == "may round differently at one row (MatMul)"
    assert "Tanh" not in built.ops("user")


def test_a_model_with_nothing_to_move_is_refused_and_unchanged(model: Any) -> None:
    with pytest.raises(ExportError, match="no user op can run once with bit-identical results"):
        model(lambda c: {"score": tf.exp(c["age"]) * c["price"]}, COLUMNS, USER, exact=True)


def test_a_signature_that_saves_too_little_is_refused_and_unchanged(model: Any) -> None:
    built = model(_tables, COLUMNS, USER, exact=True)
    before = type(built.meta_graph)()
    before.CopyFrom(built.meta_graph)
    with pytest.raises(ExportError, match=r"it would take .* ms instead of .* ms at 100 cand"):
        add_late_signature(
            built.meta_graph, built.observed, late_signature="columnar_fast", least_gain=1.0
        )
    assert built.meta_graph == before


ONCE = ["user_age", "user_words", "user_words/length"]
SIGNATURES = ["columnar_late", "columnar_exact"]


def _request(user: int) -> Columns:
    """A request of one user and one candidate, which a batching session accepts."""
    return {
        "user_age": np.array([user]),
        "user_words": np.array([[b"red", b"blue"]], object),
        "user_words/length": np.array([2]),
        "item_id": np.array([3]),
        "item_price": np.ones((1, 2), np.float32),
    }


def _joined(requests: list[Columns]) -> Columns:
    return {name: np.concatenate([r[name] for r in requests]) for name in requests[0]}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_requests_joined_by_a_batching_session_are_refused(rewritten: Run, signature: str) -> None:
    alone = rewritten(signature, _request(30))["score"]
    assert alone.shape == (1,)
    for users in (2, 3, 8):
        joined = _joined([_request(30 + user) for user in range(users)])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected shape \[1") as error:
            rewritten(signature, joined)
        assert f"{signature}/inputs/user_" in str(error.value)
        assert f"[{users}" in str(error.value)


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("column", ONCE)
def test_every_input_of_the_user_is_checked_and_named(
    rewritten: Run, signature: str, column: str
) -> None:
    columns = _joined([_request(user) for user in range(3)])
    for other in ONCE:
        if other != column:
            columns[other] = columns[other][:1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[3.* expected shape \[1") as error:
        rewritten(signature, columns)
    assert f"{signature}/inputs/{column}_" in str(error.value)


def test_declared_shapes_have_one_row_for_the_user(base_path: Path) -> None:
    model = saved_model_pb2.SavedModel.FromString((base_path / "1" / "saved_model.pb").read_bytes())
    for signature in SIGNATURES:
        inputs = model.meta_graphs[0].signature_def[signature].inputs
        rows = {name: info.tensor_shape.dim[0].size for name, info in inputs.items()}
        assert rows == dict.fromkeys(ONCE, 1) | {"item_id": -1, "item_price": -1}
