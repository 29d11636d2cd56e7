"""Requests to `columnar_pair` itself: users' states keep their rows beside those of candidates."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from ..models.ranker import ITEMS
from .conftest import Columns

Predict = Callable[[str, Columns], Columns]
AGES = np.arange(6) * 13


@pytest.fixture(scope="module")
def predict(base_path: Path) -> Iterator[Predict]:
    """Asks the native server."""
    with (
        ServerProcess("ranker", base_path) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def ask(signature: str, columns: Columns) -> Columns:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "ranker"
            request.model_spec.signature_name = signature
            for name, column in columns.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(column))
            outputs = stub.Predict(request, timeout=60).outputs
            return {name: tf.make_ndarray(output) for name, output in outputs.items()}

        yield ask


def _user(ages: Any) -> Columns:
    words = np.array([["red", "blue"]] * len(ages), object)
    columns = {"user_age": np.array(ages), "user_words": words}
    return columns | {"user_words/length": np.full(len(ages), 2)}


def _items(count: int) -> Columns:
    items = ITEMS[:count]
    prices = np.array([item["item_price"] for item in items], np.float32)
    return {"item_id": np.array([item["item_id"] for item in items]), "item_price": prices}


def _states(predict: Predict, users: int, items: int) -> Columns:
    user = predict("columnar_user", _user(AGES[:users]))
    return user | predict("columnar_item", _items(items))


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(
    ("users", "row_to_user"),
    [
        (1, [0, 0, 0, 0, 0, 0, 0]),
        (3, [0, 2, 1, 1, 2, 0, 2]),
        (3, [2, 0, 1]),
        (6, [4]),
        (1, [0]),
    ],
)
def test_each_candidate_is_scored_with_its_user(
    predict: Predict, users: int, row_to_user: list[int], numbered: bool
) -> None:
    rows = len(row_to_user)
    sent = _states(predict, users, rows) | {"row_to_user": np.array(row_to_user)}
    if numbered:
        sent["user_state/row"] = np.arange(users)
    given = predict("columnar_pair", sent)["score"]
    assert given.shape == (rows,)
    for row, user in enumerate(row_to_user):
        late = predict("columnar_late", _user(AGES[[user]]) | _items(rows))["score"]
        np.testing.assert_allclose(given[row], late[row], rtol=1e-5)


def test_one_row_names_the_user_of_all_candidates(predict: Predict) -> None:
    given = predict("columnar_pair", _states(predict, 3, 7) | {"row_to_user": np.array([2])})
    late = predict("columnar_late", _user(AGES[[2]]) | _items(7))
    np.testing.assert_allclose(given["score"], late["score"], rtol=1e-5)


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"row_to_user": [0, 0, 3, 0, 0, 0, 0]}, "indices[2] = 3 is not in [0, {users})"),
        ({"row_to_user": [0, 0, 0, -1, 0, 0, 0]}, "indices[3] = -1 is not in [0, {users})"),
        ({"row_to_user": [0, 0]}, 'input "row_to_user" has 2 rows; expected 1 or N = 7'),
        ({"user_state/row": [0, 0]}, "indices[1] = [0] is repeated"),
        ({"item_state/0": np.zeros((7, 1, 1))}, "item_state/0"),
    ],
)
def test_mistakes_are_named(predict: Predict, users: int, wrong: Columns, message: str) -> None:
    sent = _states(predict, users, 7)
    sent |= {name: np.array(value) for name, value in wrong.items()}
    with pytest.raises(grpc.RpcError) as error:
        predict("columnar_pair", sent)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert message.format(users=users) in error.value.details()
