"""The last stage accepts only users of one request, in TensorFlow and through the server."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from ..models.ranker import ITEMS
from .conftest import Columns

v1 = tf.compat.v1
Run = Callable[[str, Columns], Columns]
JOINED = "user_state_row_must_be_0_to_U_minus_1_of_one_request"
NO_USER = "row_to_user_must_be_0_to_U_minus_1"
AGES = np.arange(5) * 13
Rewrites = rewriter_config_pb2.RewriterConfig
ALL_ON = {  # except optimizers that reduce precision
    field.name: Rewrites.AGGRESSIVE if field.name == "constant_folding" else Rewrites.ON
    for field in Rewrites.DESCRIPTOR.fields
    if field.enum_type is not None
    and field.enum_type.name == "Toggle"
    and "mixed_precision" not in field.name
}


@pytest.fixture(scope="module", params=["default", "all on"])
def run(request: pytest.FixtureRequest, base_path: Path) -> Iterator[Run]:
    """A function that runs a signature, with TensorFlow's default optimizers or all of them."""
    config = v1.ConfigProto()
    if request.param == "all on":
        rewrites = Rewrites(min_graph_nodes=-1, meta_optimizer_iterations=Rewrites.TWO, **ALL_ON)
        config.graph_options.rewrite_options.CopyFrom(rewrites)
    with v1.Session(graph=tf.Graph(), config=config) as session:
        signatures = v1.saved_model.loader.load(
            session, ["serve"], str(base_path / "1")
        ).signature_def

        def run_signature(name: str, columns: Columns) -> Columns:
            signature = signatures[name]
            feeds = {
                info.name: columns[key]
                if key in columns
                else tf.make_ndarray(signature.defaults[key])
                for key, info in signature.inputs.items()
            }
            fetches = {key: info.name for key, info in signature.outputs.items()}
            outputs: Columns = session.run(fetches, feeds)
            return outputs

        yield run_signature


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
def test_users_of_one_request_are_scored(run: Run, users: int, rows: list[int], items: int) -> None:
    whose = [(3 * row + 1) % users for row in range(items)]
    given = _score(run, users, items, user_state__row=rows, row_to_user=whose)
    for row, user in enumerate(whose):
        late = run("columnar_late", _user(AGES[[user]]) | _items(items))["score"]
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
def test_users_of_several_requests_are_refused(run: Run, rows: list[int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=JOINED):
        _score(run, len(rows), len(rows), user_state__row=rows, row_to_user=[0] * len(rows))


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_a_row_that_names_no_user_is_refused(run: Run, users: int, wrong: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=NO_USER) as error:
        _score(run, users, 4, row_to_user=[0, 0, wrong, 0])
    assert f"indices[2] = {wrong} is not in [0, {users})" in error.value.message


Predict = Callable[[str, Columns], Columns]


@pytest.fixture(scope="module")
def predict(base_path: Path) -> Iterator[Predict]:
    """A function that sends requests to the native server."""
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
    sent = predict("columnar_user", _user(AGES[:users])) | predict("columnar_item", _items(7))
    sent |= {name: np.array(value) for name, value in wrong.items()}
    with pytest.raises(grpc.RpcError) as error:
        predict("columnar_pair", sent)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert message.format(users=users) in error.value.details()
