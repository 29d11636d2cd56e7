"""With a server that joins requests, like TF Serving with --enable_batching, users do not mix.

The server here runs the exported model in TensorFlow and joins simultaneous requests under the
rules of TF Serving's batching session.
"""

import queue
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient, ServerError
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from ..models.ranker import ITEMS, USER
from ..models.saving import serialized

v1 = tf.compat.v1
UNEQUAL = "Batching session Run() input tensors must have equal 0th-dimension size"
WORDS = ["red", "blue", "green", "unheard of"]
# All users have two words, because this model's scores depend on the longest list in a request.
USERS = [{**USER, "user_age": 20 + n, "user_words": [WORDS[n % 4], "red"]} for n in range(6)]


class BatchingServicer(prediction_service_pb2_grpc.PredictionServiceServicer):  # type: ignore[misc]
    """Joins requests to one signature that arrive within a short time."""

    def __init__(self, folder: Path, metadata: Any) -> None:
        self._metadata = metadata
        self._session = v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = v1.saved_model.loader.load(self._session, ["serve"], str(folder))
        self._signatures = loaded.signature_def
        self._waiting: dict[str, queue.Queue[Any]] = {
            name: queue.Queue() for name in self._signatures
        }
        self.joined: list[tuple[str, int]] = []  # signature, requests per run
        self.smallest = 1  # the first of allowed_batch_sizes
        for name in self._signatures:
            threading.Thread(target=self._join, args=(name,), daemon=True).start()

    def GetModelMetadata(self, request: Any, context: Any) -> Any:
        """Passes on the real server's answer."""
        return self._metadata

    def Predict(self, request: Any, context: Any) -> Any:
        """Returns the rows of the joined run's outputs that belong to this request."""
        columns = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        if len({len(column) for column in columns.values()}) > 1:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, UNEQUAL)
        answer: futures.Future[Any] = futures.Future()
        self._waiting[request.model_spec.signature_name].put((columns, answer))
        try:
            outputs = answer.result()
        except tf.errors.InvalidArgumentError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
        response = predict_pb2.PredictResponse()
        for name, values in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(values))
        return response

    def _join(self, signature: str) -> None:
        while True:
            requests = [self._waiting[signature].get()]
            try:
                while len(requests) < 8:
                    requests.append(self._waiting[signature].get(timeout=0.05))
            except queue.Empty:
                pass
            self.joined.append((signature, len(requests)))
            self._run(signature, requests)

    def _run(self, signature: str, requests: list[Any]) -> None:
        definition = self._signatures[signature]
        columns = [columns for columns, _ in requests]
        feeds = {}
        for name, info in definition.inputs.items():
            rows = np.concatenate([one[name] for one in columns])
            missing = max(self.smallest - len(rows), 0)
            feeds[info.name] = np.concatenate([rows, np.repeat(rows[:1], missing, axis=0)])
        fetches = {name: info.name for name, info in definition.outputs.items()}
        try:
            outputs = self._session.run(fetches, feeds)
        except tf.errors.InvalidArgumentError as error:
            for _, answer in requests:
                answer.set_exception(error)
            return
        start = 0
        for one, answer in requests:
            end = start + len(one["item_id"])
            answer.set_result({name: values[start:end] for name, values in outputs.items()})
            start = end


@pytest.fixture
def batching(base_path: Path) -> Iterator[tuple[str, BatchingServicer]]:
    """The address of a joining server, and its servicer, which records the runs."""
    with (
        ServerProcess("ranker", base_path) as real,
        RankingClient(real.target, "ranker", timeout_seconds=60) as client,
        grpc.insecure_channel(real.target) as channel,
    ):
        client.schema()
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = "ranker"
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        servicer = BatchingServicer(base_path / "1", stub.GetModelMetadata(request))
    server = grpc.server(futures.ThreadPoolExecutor(16))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", servicer
    server.stop(None).wait()


@pytest.mark.parametrize("candidates", [1, 5])
def test_every_user_gets_its_own_scores(
    batching: tuple[str, BatchingServicer], base_path: Path, candidates: int
) -> None:
    address, servicer = batching
    items = ITEMS[:candidates]
    model = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    expected = [
        model(tf.constant([serialized(u | i) for i in items]))["score"].numpy() for u in USERS
    ]
    with RankingClient(address, "ranker", timeout_seconds=60, target="stock") as client:
        client.schema()
        for _ in range(3):
            with futures.ThreadPoolExecutor(len(USERS)) as pool:
                found = list(pool.map(lambda user: client.rank(user, items).scores, USERS))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)
    assert {name for name, _ in servicer.joined} == {"columnar"}
    assert max(size for _, size in servicer.joined) > 1


def test_joined_users_of_the_late_signature_are_refused(
    batching: tuple[str, BatchingServicer],
) -> None:
    """A stock server that joins requests never scores one user with another's features."""
    address, _ = batching
    with RankingClient(address, "ranker", timeout_seconds=60, target="late") as client:

        def refusal(user: dict[str, Any]) -> str:
            try:
                client.rank(user, ITEMS[:1])
            except ServerError as error:
                return error.details
            return ""

        client.schema()
        with futures.ThreadPoolExecutor(len(USERS)) as pool:
            refused = list(filter(None, pool.map(refusal, USERS)))
    assert all("is not compatible with expected shape [1" in details for details in refused)


def test_a_lone_padded_row_gets_its_score(
    batching: tuple[str, BatchingServicer], base_path: Path
) -> None:
    address, servicer = batching
    servicer.smallest = 4
    model = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    expected = model(tf.constant([serialized(USERS[0] | ITEMS[0])]))["score"].numpy()
    with RankingClient(address, "ranker", timeout_seconds=60) as client:
        scores = client.rank(USERS[0], ITEMS[:1], target="stock").scores
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
        with pytest.raises(ServerError, match=r"\[4.*is not compatible with expected shape \[1"):
            client.rank(USERS[0], ITEMS[:1], target="late")
    assert servicer.joined == [("columnar", 1), ("columnar_late", 1)]
