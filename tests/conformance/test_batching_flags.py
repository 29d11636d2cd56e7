"""--enable_batching as in TensorFlow Serving: requests are joined, and padded if that is enabled.

C++ tests cover the rest: the parameters' file, allowed sizes, splitting, and a full queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.conformance.conftest import write_models
from tests.conformance.test_batching import Request, Scores, right  # noqa: F401
from tests.server.metrics_page import Metrics

Start = Callable[..., AbstractContextManager["Ranker"]]
NEVER = "batch_timeout_micros { value: 100000000 }"  # no timeout: a run starts only when it is full


class Ranker:
    """A server that joins requests, and one connection for concurrent calls."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        channel = grpc.insecure_channel(server.target)
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def send(self, request: Request) -> Any:
        """Starts the call and returns it."""
        message = predict_pb2.PredictRequest()
        message.model_spec.name = "ranker"
        message.model_spec.signature_name = request.signature
        for name, column in request.columns().items():
            message.inputs[name].CopyFrom(tf.make_tensor_proto(column))
        return self._stub.Predict.future(message, timeout=60)

    def runs(self) -> tuple[int, int, int]:
        """How many runs `columnar` has had so far, and how many requests and rows were in them."""
        requests, rows = ":colcast:run_requests", ":colcast:run_rows"
        return (
            self._counted(f"{requests}_count"),
            self._counted(f"{requests}_sum"),
            self._counted(f"{rows}_sum"),
        )

    def _counted(self, name: str) -> int:
        labels = {
            "model_name": "ranker", "signature_name": "columnar",
            "API": "Predict", "entrypoint": "GRPC",
        }  # fmt: skip
        return int(Metrics(self.server).value(name, **labels))


def scores(call: Any) -> Any:
    return tf.make_ndarray(call.result().outputs["score"])


@pytest.fixture(scope="module")
def ranker_directory(native: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"), "ranker")


@pytest.fixture
def start(ranker_directory: Path, tmp_path: Path) -> Start:
    @contextmanager
    def started(parameters: str, *flags: str) -> Iterator[Ranker]:
        file = tmp_path / "batching.pbtxt"
        file.write_text(parameters)
        batching = [
            "--enable_batching",
            f"--batching_parameters_file={file}",
            "--num_workers=1",  # with more, idle workers would also split requests
            "--max_piece_milliseconds=1e6",
            *publishing(tmp_path),
            *flags,
        ]
        with ServerProcess("ranker", ranker_directory / "ranker", batching) as server:
            yield Ranker(server)

    return started


FIVE_ROWS = [Request("columnar", 0, (3, 1, 4)), Request("columnar", 1, (1, 5))]


def test_a_full_run_is_answered_before_its_timeout(start: Start, right: Scores) -> None:  # noqa: F811
    with start(f"max_batch_size {{ value: 5 }} {NEVER}") as ranker:
        calls = [ranker.send(request) for request in FIVE_ROWS]
        for call, request in zip(calls, FIVE_ROWS, strict=True):
            np.testing.assert_allclose(scores(call), right(request), rtol=1e-5)
        assert ranker.runs() == (1, 2, 5)


@contextmanager
def counting(counter: Any, folder: Path, parameters: str) -> Iterator[Callable[[Any], Any]]:
    """Serves the module with batching; yields a function that starts a call for the input `x`."""
    tf.saved_model.save(counter, str(folder / "counter" / "1"), signatures=counter.count)
    file = folder / "batching.pbtxt"
    file.write_text(parameters)
    flags = ["--enable_batching", f"--batching_parameters_file={file}"]
    with (
        ServerProcess("counter", folder / "counter", flags) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def send(x: Any) -> Any:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "counter"
            request.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
            return stub.Predict.future(request, timeout=60)

        yield send


class WidthCounter(tf.Module):  # type: ignore[misc]
    """Returns for every row the number of rows in its run, and their width."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "x")])
    def count(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        rows, width = tf.shape(x)[0], tf.shape(x)[1]
        return {"rows": tf.fill([rows], rows), "width": tf.fill([rows], width)}


@pytest.mark.parametrize(
    ("pad", "found"),
    [
        ("", [([1], [3]), ([1], [5])]),
        ("pad_variable_length_inputs: true", [([2], [5]), ([2], [5])]),
    ],
)
def test_only_padding_changes_the_shapes_that_the_model_sees(
    native: None, tmp_path: Path, pad: str, found: list[tuple[list[int], list[int]]]
) -> None:
    with counting(WidthCounter(), tmp_path, f"max_batch_size {{ value: 2 }} {NEVER} {pad}") as send:
        calls = [send(np.zeros((1, width), np.float32)) for width in (3, 5)]
        answers = [call.result().outputs for call in calls]
        for outputs, (rows, widths) in zip(answers, found, strict=True):
            assert tf.make_ndarray(outputs["rows"]).tolist() == rows
            assert tf.make_ndarray(outputs["width"]).tolist() == widths
