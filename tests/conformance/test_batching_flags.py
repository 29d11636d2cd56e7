"""--enable_batching as in TensorFlow Serving: requests are joined, split, padded, refused.

BatchingTest, in C++, covers the file of its parameters.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
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
from tests.conformance.test_batching import ITEMS, Request, Scores, right  # noqa: F401
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

    def pieces(self) -> int:
        """The number of requests to `columnar` that were split."""
        return self._counted(":colcast:pieces")

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


class RowCounter(tf.Module):  # type: ignore[misc]
    """Returns for every row the number of rows in its run."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def count(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"rows": tf.fill(tf.shape(x), tf.shape(x)[0])}


SPLIT = "enable_large_batch_splitting { value: true } max_execution_batch_size { value: 8 }"


@pytest.mark.parametrize(
    ("parameters", "cases"),
    [
        ("max_batch_size { value: 8 }", [(3, [4]), (4, [4]), (5, [8]), (1, [4]), (8, [8])]),
        (f"max_batch_size {{ value: 64 }} {SPLIT}", [(3, [4]), (10, [8, 4]), (21, [8, 8, 8])]),
    ],
    ids=["whole", "split"],
)
def test_runs_are_filled_up_to_an_allowed_size(
    native: None, tmp_path: Path, parameters: str, cases: list[tuple[int, list[int]]]
) -> None:
    parameters += " allowed_batch_sizes: 4 allowed_batch_sizes: 8"
    with counting(RowCounter(), tmp_path, parameters) as send:
        for rows, runs in cases:
            response = send(np.zeros(rows, np.float32)).result()
            expected = [run for run in runs for _ in range(run)]
            assert tf.make_ndarray(response.outputs["rows"]).tolist() == expected[:rows]


def test_large_requests_are_split_if_enabled(start: Start, right: Scores) -> None:  # noqa: F811
    splitting = (
        "max_batch_size { value: 64 } enable_large_batch_splitting { value: true } "
        "max_execution_batch_size { value: 4 }"
    )
    with start(splitting) as ranker:
        for signature in ("columnar", "columnar_late"):
            once = signature != "columnar"
            request = Request(signature, 0, tuple(range(len(ITEMS))), once=once)
            np.testing.assert_allclose(scores(ranker.send(request)), right(request), rtol=1e-5)
        assert ranker.runs() == (0, 0, 0)  # slices are not counted as runs
        assert ranker.pieces() == -(-len(ITEMS) // 4)
        refused = ranker.send(Request("columnar", 0, tuple(n % 20 for n in range(65))))
        assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "Task size 65 is larger than maximum input batch size 64" in refused.details()


def test_a_full_queue_is_unavailable(start: Start) -> None:
    """Together the requests exceed a run of four rows, so one waits and the other is refused."""
    full = f"max_batch_size {{ value: 4 }} max_enqueued_batches {{ value: 1 }} {NEVER}"
    with start(full) as ranker:
        calls = {len(request.items): ranker.send(request) for request in FIVE_ROWS}
        refused = next(as_completed(calls.values()))
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert "The batch scheduling queue to which this task was submitted is full" in (
            refused.details()
        )
        rows, waits = next((rows, call) for rows, call in calls.items() if call is not refused)
        last = ranker.send(Request("columnar", 1, (1,) * (4 - rows)))
        assert [len(scores(call)) for call in (waits, last)] == [rows, 4 - rows]


def as_completed(calls: Iterable[Any]) -> Iterator[Any]:
    """The calls in the order in which they end."""
    done: queue.Queue[Any] = queue.Queue()
    for call in calls:
        call.add_done_callback(done.put)
    while True:
        yield done.get(timeout=60)
