"""The metrics page after requests."""

import json
import math
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import MetricsMeter
from colcast.server import ServerProcess

from ..waiting import wait_until
from .metrics_page import PATH, Metrics
from .servers import BusyServer, Stubs, busy_server

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


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as error:
        call(*args, **kwargs)
    return error.value.code()


def test_requests_are_counted_by_status(monitored, growth, ranker_inputs):
    for _ in range(3):
        monitored.stubs.predict(ranker_inputs)
    wrong = ranker_inputs | {"item": [1.0, 2.0]}
    for _ in range(2):
        assert refused(monitored.stubs.predict, wrong) == grpc.StatusCode.INVALID_ARGUMENT
    count = ":tensorflow:serving:request_count"
    assert growth(count, model_name="ranker", status="OK") == 3
    assert growth(count, model_name="ranker", status="INVALID_ARGUMENT") == 2
    assert growth(":colcast:requests_total", **OURS, status="OK") == 3
    assert growth(":colcast:requests_total", **OURS, status="INVALID_ARGUMENT") == 2


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


def test_latencies_are_of_the_requests_that_were_answered(monitored, growth, ranker_inputs):
    for _ in range(4):
        monitored.stubs.predict(ranker_inputs)
    refused(monitored.stubs.predict, ranker_inputs | {"item": [1.0, 2.0]})
    labels = {"model_name": "ranker", "API": "Predict"}
    latency, runtime = ":tensorflow:serving:request_latency", ":tensorflow:serving:runtime_latency"
    assert growth(f"{latency}_count", **labels, entrypoint="GRPC") == 4
    assert growth(f"{runtime}_count", **labels, runtime="TF1") == 4
    assert (
        growth(f"{latency}_sum", **labels, entrypoint="GRPC")
        > growth(f"{runtime}_sum", **labels, runtime="TF1")
        > 0
    )
    for ours in ("request_latency", "queue_wait", "runtime"):
        assert growth(f":colcast:{ours}_microseconds_count", **OURS) == 4


def test_bytes_are_those_of_the_messages(monitored, growth, ranker_inputs):
    request = monitored.stubs.request(ranker_inputs)
    response = monitored.stubs.prediction.Predict(request, timeout=120)
    assert growth(":colcast:request_bytes_sum", **OURS) == request.ByteSize()
    assert growth(":colcast:response_bytes_sum", **OURS) == response.ByteSize()


def test_bytes_saved_are_what_repeating_the_row_would_have_added(monitored, growth, ranker_inputs):
    rows = 5
    names = {"user_name": ["ann"] * rows, "item_name": ["x"] * rows}
    request = monitored.stubs.request(ranker_inputs | names)
    for name, values in (("user", [2.0]), ("item", range(rows))):
        array = np.array(values, np.float32)
        proto = request.inputs[name]
        proto.ClearField("float_val")
        proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
        proto.tensor_content = array.tobytes()
    monitored.stubs.prediction.Predict(request, timeout=120)
    assert growth(":colcast:rows_sum", **OURS) == rows
    assert growth(":colcast:columns_sent_once_total", **OURS) == 1
    assert growth(":colcast:bytes_saved_total", **OURS) == (rows - 1) * 4  # a float has 4 bytes


def test_histograms_add_up(monitored, ranker_inputs):
    monitored.stubs.predict(ranker_inputs)
    histograms = [f for f in monitored.read().families if f.type == "histogram" and f.samples]
    assert len(histograms) >= 8
    for family in histograms:
        series: dict[frozenset[Any], dict[str, Any]] = {}
        for sample in family.samples:
            labels = dict(sample.labels)
            bound = labels.pop("le", None)
            one = series.setdefault(frozenset(labels.items()), {"buckets": []})
            if bound is not None:
                one["buckets"].append((float(bound), sample.value))
            else:
                one[sample.name.rpartition("_")[2]] = sample.value
        for one in series.values():
            bounds, counts = zip(*one["buckets"], strict=True)
            assert list(bounds) == sorted(bounds)
            assert bounds[-1] == math.inf
            assert list(counts) == sorted(counts)
            assert counts[-1] == one["count"]
            assert one["sum"] >= 0


def test_names_that_only_a_request_has_make_no_labels(monitored, growth, ranker_inputs):
    for attempt in range(5):
        invented = f"invented-{attempt}"
        assert (
            refused(monitored.stubs.predict, ranker_inputs, name=invented)
            == grpc.StatusCode.NOT_FOUND
        )
        assert (
            refused(monitored.stubs.predict, ranker_inputs, signature_name=invented)
            == grpc.StatusCode.FAILED_PRECONDITION
        )
    assert not [s for s in monitored.read().samples if "invented" in str(s.labels)]
    assert growth(":tensorflow:serving:request_count", model_name="", status="NOT_FOUND") == 5
    unknown = OURS | {"signature_name": "unknown"}
    assert growth(":colcast:requests_total", **unknown, status="FAILED_PRECONDITION") == 5


def test_an_empty_signature_name_is_the_default_one(monitored, growth, ranker_inputs):
    monitored.stubs.predict(ranker_inputs, signature_name="")
    assert growth(":colcast:requests_total", **OURS, status="OK") == 1


@pytest.fixture(name="busy")
def _busy(tmp_path: Path, serve: Callable[..., Stubs]) -> Iterator[BusyServer]:
    with busy_server(tmp_path, serve) as busy:
        yield busy


def test_requests_that_find_the_queue_full_are_counted(busy):
    calls = [busy.ask() for _ in range(8)]
    wait_until(lambda: busy.grown(":colcast:dropped_requests_total", reason="queue_full") == 7)
    busy.gate.open()
    codes = sorted(call.code().name for call in calls)
    assert codes == ["NOT_FOUND", *["RESOURCE_EXHAUSTED"] * 7]
    count = ":tensorflow:serving:request_count"
    assert busy.grown(count, model_name="", status="RESOURCE_EXHAUSTED") == 7


def test_requests_that_wait_too_long_are_counted(busy):
    # At the deadline, either the server drops the request first, or the client cancels it.
    reasons = {"deadline_exceeded": "DEADLINE_EXCEEDED", "cancelled": "CANCELLED"}

    def dropped(reason: str) -> float:
        return busy.grown(":colcast:dropped_requests_total", reason=reason)

    waiting = busy.ask(timeout=3)
    busy.wait_for_a_queue()
    assert waiting.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    busy.gate.open()
    wait_until(lambda: sum(map(dropped, reasons)) == 1)
    for reason, code in reasons.items():
        answered = sum(
            busy.grown(":tensorflow:serving:request_count", model_name=name, status=code)
            for name in ("", busy.stubs.model)
        )
        assert dropped(reason) == answered
    assert busy.grown(":colcast:queue_length") == 0


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


def test_the_load_test_reads_cpu_and_memory_from_it(monitored, ranker_inputs):
    meter = MetricsMeter(f"http://{monitored.server.rest_target}{PATH}")
    before = meter.cpu_seconds()
    monitored.stubs.predict(ranker_inputs)
    assert meter.cpu_seconds() > before > 0
    assert meter.memory_bytes() > 50e6


def test_every_metric_is_documented_and_no_other(monitored, ranker_inputs):
    monitored.stubs.predict(ranker_inputs)
    page = Path(__file__).parents[2].joinpath("docs", "metrics.md").read_text()
    names = re.findall(r"^\| ((?:`(?::|process_)[a-z_:]+`,? )+)\|", page, re.M)
    documented = re.findall(r"`([^`]+)`", "".join(names))
    published = [family.name for family in monitored.read().families]
    # The parser removes "_total" from the names of counters.
    assert sorted(name.removesuffix("_total") for name in documented) == sorted(published)
