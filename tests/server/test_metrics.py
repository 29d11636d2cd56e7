"""The metrics page after requests."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf

from .metrics_page import Metrics
from .servers import Stubs

OURS = {
    "model_name": "ranker",
    "signature_name": "serving_default",
    "API": "Predict",
    "entrypoint": "GRPC",
}


@pytest.fixture
def growth(stubs: Stubs) -> Callable[..., float]:
    """A function that returns how much a sample of the ranker's server has grown since the start.

    The server also counts other tests' requests.
    """
    before = Metrics(stubs.server)

    def grown(name: str, **labels: str) -> float:
        return Metrics(stubs.server).value(name, **labels) - before.value(name, **labels)

    return grown


def test_answers_and_errors_of_grpc_are_counted(stubs, growth, ranker_inputs):
    rows = 5
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
    assert not [s for s in Metrics(stubs.server).samples if "invented" in str(s.labels)]
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


def test_rest_and_grpc_requests_are_counted_separately(stubs, growth):
    rows = [
        {"user": 2.0, "item": item, "user_name": "ann", "item_name": "x"} for item in (1.0, 2.0)
    ]
    body = json.dumps({"instances": rows}).encode()
    url = f"http://{stubs.server.rest_target}/v1/models/ranker:predict"
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
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url, data=b"{", timeout=120)
    unnamed = ours | {"signature_name": "unknown"}
    assert growth(":colcast:requests_total", **unnamed, status="INVALID_ARGUMENT") == 1


def test_every_metric_is_documented_and_no_other(stubs, ranker_inputs):
    stubs.predict(ranker_inputs)
    page = Path(__file__).parents[2].joinpath("docs", "metrics.md").read_text()
    names = re.findall(r"^\| ((?:`(?::|process_)[a-z_:]+`,? )+)\|", page, re.M)
    documented = re.findall(r"`([^`]+)`", "".join(names))
    published = [family.name for family in Metrics(stubs.server).families]
    # The parser removes "_total" from the names of counters.
    assert sorted(name.removesuffix("_total") for name in documented) == sorted(published)
