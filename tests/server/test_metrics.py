"""The metrics page after requests."""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .. import models
from ..models.impure import Gate
from ..waiting import wait_until
from .metrics_page import Metrics
from .servers import ONE_WAITS, Stubs

OURS = {
    "model_name": "ranker",
    "signature_name": "serving_default",
    "API": "Predict",
    "entrypoint": "GRPC",
}


class Monitored(NamedTuple):
    """A server with a metrics page, and stubs for it."""

    server: ServerProcess
    stubs: Any

    def read(self) -> Metrics:
        return Metrics(self.server)


@pytest.fixture
def monitored(stubs: Stubs) -> Monitored:
    """The ranker's server, which also counts other tests' requests."""
    return Monitored(stubs.server, stubs)


@pytest.fixture
def growth(monitored: Monitored) -> Callable[..., float]:
    """A function that returns how much a sample has grown since the test began."""
    before = monitored.read()

    def grown(name: str, **labels: str) -> float:
        return monitored.read().value(name, **labels) - before.value(name, **labels)

    return grown


def test_answers_and_errors_of_grpc_are_counted(monitored, growth, ranker_inputs):
    stubs, rows = monitored.stubs, 5
    names = {"user_name": ["ann"] * rows, "item_name": ["x"] * rows}
    request = stubs.request(ranker_inputs | names, signature_name="")
    for name, values in (("user", [2.0]), ("item", range(rows))):
        array = np.array(values, np.float32)
        proto = request.inputs[name]
        proto.ClearField("float_val")
        proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
        proto.tensor_content = array.tobytes()
    responses = [stubs.prediction.Predict(request, timeout=120) for _ in range(3)]
    wrong = ranker_inputs | {"item": [1.0, 2.0]}
    invented = {"signature_name": "invented"}, {"name": "invented"}
    codes = "INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"
    for code, inputs, spec in zip(codes, (wrong, {}, {}), ({}, *invented), strict=True):
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(inputs, **spec)
        assert error.value.code().name == code
    count, counted = ":tensorflow:serving:request_count", ":colcast:requests_total"
    assert growth(count, model_name="ranker", status="OK") == 3
    assert growth(counted, **OURS, status="OK") == 3
    assert growth(counted, **OURS, status="INVALID_ARGUMENT") == 1
    # Names that only a request has make no labels.
    assert growth(count, model_name="", status="NOT_FOUND") == 1
    unknown = OURS | {"signature_name": "unknown"}
    assert growth(counted, **unknown, status="FAILED_PRECONDITION") == 1
    assert not [s for s in monitored.read().samples if "invented" in str(s.labels)]
    assert growth(":colcast:request_bytes_sum", **OURS) == 3 * request.ByteSize()
    assert growth(":colcast:response_bytes_sum", **OURS) == sum(r.ByteSize() for r in responses)
    assert growth(":colcast:rows_sum", **OURS) == 3 * rows
    assert growth(":colcast:columns_sent_once_total", **OURS) == 3
    assert growth(":colcast:bytes_saved_total", **OURS) == 3 * (rows - 1) * 4  # bytes of a float
    # Latencies are of the requests that were answered.
    latency, runtime = ":tensorflow:serving:request_latency", ":tensorflow:serving:runtime_latency"
    labels = {"model_name": "ranker", "API": "Predict"}
    of_all, of_runs = labels | {"entrypoint": "GRPC"}, labels | {"runtime": "TF1"}
    assert growth(f"{latency}_count", **of_all) == growth(f"{runtime}_count", **of_runs) == 3
    assert growth(f"{latency}_sum", **of_all) > growth(f"{runtime}_sum", **of_runs) > 0
    for ours in ("request_latency", "queue_wait", "runtime"):
        assert growth(f":colcast:{ours}_microseconds_count", **OURS) == 3


def test_rest_and_grpc_requests_are_counted_separately(monitored, growth):
    rows = [
        {"user": 2.0, "item": item, "user_name": "ann", "item_name": "x"} for item in (1.0, 2.0)
    ]
    body = json.dumps({"instances": rows}).encode()
    url = f"http://{monitored.server.rest_target}/v1/models/ranker:predict"
    with urllib.request.urlopen(url, data=body, timeout=120) as response:
        answer = response.read()
    ours = OURS | {"entrypoint": "REST"}
    assert growth(":colcast:requests_total", **ours, status="OK") == 1
    assert growth(":colcast:rows_sum", **ours) == 2
    assert growth(":colcast:request_bytes_sum", **ours) == len(body)
    assert growth(":colcast:response_bytes_sum", **ours) == len(answer)
    theirs = {"model_name": "ranker", "API": "predict", "entrypoint": "REST"}
    assert growth(":tensorflow:serving:request_latency_count", **theirs) == 1
    assert growth(":colcast:requests_total", **OURS, status="OK") == 0


class Busy(NamedTuple):
    """A server whose only worker waits at a gate and whose queue holds one more request."""

    stubs: Stubs
    gate: Gate
    before: Metrics

    def ask(self, path: Path, timeout: float = 300) -> Any:
        """Starts a call that reads a file."""
        request = self.stubs.request({"path": str(path), "x": [1.0]})
        return self.stubs.prediction.Predict.future(request, timeout=timeout)

    def grown(self, name: str, **labels: str) -> float:
        """How much a sample of the metrics page has grown since the worker reached the gate."""
        now = Metrics(self.stubs.server).value(name, **labels)
        return now - self.before.value(name, **labels)


@pytest.fixture(name="busy")
def _busy(tmp_path: Path, serve: Callable[..., Stubs]) -> Iterator[Busy]:
    models.build("gated", tmp_path / "gated" / "1")
    stubs, gate = serve(tmp_path / "gated", *ONE_WAITS), Gate(tmp_path / "gate")
    running = Busy(stubs, gate, Metrics(stubs.server)).ask(gate.path)
    wait_until(gate.is_reached)
    yield Busy(stubs, gate, Metrics(stubs.server))
    assert "Illegal seek" in running.details()  # TensorFlow cannot read a pipe as a file


def test_requests_that_find_the_queue_full_are_counted(busy, tmp_path):
    calls = [busy.ask(tmp_path / "none") for _ in range(8)]
    wait_until(lambda: busy.grown(":colcast:dropped_requests_total", reason="queue_full") == 7)
    busy.gate.open()
    codes = sorted(call.code().name for call in calls)
    assert codes == ["NOT_FOUND", *["RESOURCE_EXHAUSTED"] * 7]
    count = ":tensorflow:serving:request_count"
    assert busy.grown(count, model_name="", status="RESOURCE_EXHAUSTED") == 7


def test_requests_that_wait_too_long_are_counted(busy, tmp_path):
    # At the deadline, either the server drops the request first, or the client cancels it.
    reasons = {"deadline_exceeded": "DEADLINE_EXCEEDED", "cancelled": "CANCELLED"}

    def dropped(reason: str) -> float:
        return busy.grown(":colcast:dropped_requests_total", reason=reason)

    def queued() -> bool:
        return busy.grown(":colcast:queue_length") == 1

    waiting = busy.ask(tmp_path / "none", timeout=3)
    wait_until(lambda: queued() or waiting.done())
    while waiting.done():  # it may have expired before it reached the queue
        waiting = busy.ask(tmp_path / "none", timeout=3)
        wait_until(lambda call=waiting: queued() or call.done())
    assert waiting.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    busy.gate.open()
    wait_until(lambda: sum(map(dropped, reasons)) >= 1 and not queued())
    for reason, code in reasons.items():
        answered = sum(
            busy.grown(":tensorflow:serving:request_count", model_name=name, status=code)
            for name in ("", busy.stubs.model)
        )
        assert dropped(reason) == answered


def test_versions_and_their_loads(tmp_path, ranker_versions, serve):
    ranker_versions(tmp_path / "1")
    stubs = serve(tmp_path)
    broken = tmp_path / "2"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"no model")
    attempts = ":tensorflow:cc:saved_model:load_attempt_count"

    def failed() -> bool:
        labels = {"model_path": str(broken), "status": "fail"}
        return Metrics(stubs.server).value(attempts, **labels) == 1

    wait_until(failed)
    metrics = Metrics(stubs.server)
    good = {"model_path": str(tmp_path / "1")}
    assert metrics.value(attempts, **good, status="success") == 1
    assert metrics.value(":tensorflow:cc:saved_model:load_latency", **good) > 0
    state = {"model_name": stubs.model, "version": "1", "state": "AVAILABLE"}
    assert metrics.value(":colcast:model_version_state", **state) == 1


def test_every_metric_is_documented_and_no_other(monitored, ranker_inputs):
    monitored.stubs.predict(ranker_inputs)
    page = Path(__file__).parents[2].joinpath("docs", "metrics.md").read_text()
    names = re.findall(r"^\| ((?:`(?::|process_)[a-z_:]+`,? )+)\|", page, re.M)
    documented = re.findall(r"`([^`]+)`", "".join(names))
    published = [family.name for family in monitored.read().families]
    # The parser removes "_total" from the names of counters.
    assert sorted(name.removesuffix("_total") for name in documented) == sorted(published)
