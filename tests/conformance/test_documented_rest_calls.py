"""The REST calls of TensorFlow Serving's documentation, on the models its examples use.

Codes and bodies come from the documentation: the page on the REST API, which uses
half_plus_three (y = x / 2 + 3), and the page on Docker, which uses half_plus_two. Bodies are
compared as JSON: the pages and tensorflow_model_server differ in white space.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def call(rest_target: str) -> Call:
    """A function that sends a GET, or a POST if there is a body; returns the code and the JSON."""

    def send(path: str, body: str | None = None, method: str = "") -> tuple[int, Any]:
        connection = http.client.HTTPConnection(rest_target, timeout=60)
        connection.request(method or ("GET" if body is None else "POST"), path, body)
        response = connection.getresponse()
        text = response.read().decode()
        assert response.getheader("Content-Type") == "application/json"
        connection.close()
        return response.status, json.loads(text, parse_constant=str)  # reads NaN as the text "NaN"

    return send


THREE = "/v1/models/saved_model_half_plus_three"
STATUS = {
    "model_version_status": [
        {
            "version": "123",
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
    ]
}


@pytest.mark.parametrize("where", ["", "/versions/123", "/labels/stable"])
def test_the_status_of_a_model(call: Call, where: str) -> None:
    assert call(THREE + where) == (200, STATUS)


@pytest.mark.parametrize("where", ["", "/versions/123", "/labels/stable"])
def test_a_predict_call(call: Call, where: str) -> None:
    answer = call(f"{THREE}{where}:predict", '{"instances": [1.0,2.0,5.0]}')
    assert answer == (200, {"predictions": [3.5, 4.0, 5.5]})


def test_a_regress_call(call: Call) -> None:
    body = '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}'
    assert call(f"{THREE}:regress", body) == (200, {"results": [3.5, 4.0]})


def test_a_missing_model(call: Call) -> None:
    code, answer = call("/v1/models/half:predict", '{"instances": [1.0,5.0]}')
    assert code == 404
    # The page's whole message; the server may append the versions that it serves.
    assert answer["error"].startswith("Servable not found for request: Latest(half)")


def test_the_predict_call_of_the_page_on_docker(call: Call) -> None:
    answer = call("/v1/models/half_plus_two:predict", '{"instances": [1.0, 2.0, 5.0]}')
    assert answer == (200, {"predictions": [2.5, 3.0, 4.5]})


def test_classification(call: Call) -> None:
    body = {"signature_name": "classify_x_to_y", "examples": [{"x": 10.0}, {"x": 20.0}]}
    answer = call("/v1/models/half_plus_two:classify", json.dumps(body))
    assert answer == (200, {"results": [[["", 7.0]], [["", 12.0]]]})


def test_the_context_is_shared_by_all_examples(call: Call) -> None:
    body = {"signature_name": "regress_x_to_y", "context": {"x": 80.0}, "examples": [{}, {}]}
    answer = call("/v1/models/half_plus_two:regress", json.dumps(body))
    assert answer == (200, {"results": [42.0, 42.0]})


def test_the_metadata_of_a_model(call: Call) -> None:
    code, metadata = call(f"{THREE}/metadata")
    assert code == 200
    spec = {"name": "saved_model_half_plus_three", "signature_name": "", "version": "123"}
    assert metadata["model_spec"] == spec
    signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    dims = [{"size": "-1", "name": ""}, {"size": "1", "name": ""}]
    assert signature["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {"dim": dims, "unknown_rank": False},
        "name": "x:0",
    }


ROWS = {
    "instances": [
        {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
        {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
    ]
}
COLUMNS = {
    "inputs": {
        "tag": ["foo", "bar"],
        "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
        "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
    }
}


def test_row_and_column_format(call: Call) -> None:
    path = "/v1/models/tensors:predict"
    code, answer = call(path, json.dumps(ROWS))
    assert code == 200, answer
    rows = answer["predictions"]
    assert rows[0] == {
        "label": "foo!",
        "total": 15,
        "image_bytes": {"b64": "Zm9v"},
        "flipped": [[3, 4], [1, 2]],
    }
    code, answer = call(path, json.dumps(COLUMNS))
    assert code == 200, answer
    columns = answer["outputs"]
    assert columns == {name: [row[name] for row in rows] for name in rows[0]}


def test_binary_values_are_base64(call: Call) -> None:
    inputs = {**COLUMNS["inputs"], "tag": [{"b64": "aW1hZ2UgYnl0ZXM="}, "text"]}
    code, answer = call("/v1/models/tensors:predict", json.dumps({"inputs": inputs}))
    outputs = answer["outputs"]
    assert (code, outputs["label"]) == (200, ["image bytes!", "text!"])
    assert outputs["image_bytes"] == [{"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": "dGV4dA=="}]


def test_non_finite_values(call: Call) -> None:
    body = '{"instances": [NaN, Infinity, -Infinity]}'
    answer = {"predictions": ["NaN", "Infinity", "-Infinity"]}
    assert call(f"{THREE}:predict", body) == (200, answer)


@pytest.mark.parametrize(
    ("method", "path", "body", "error"),
    [
        ("GET", "/v1/models", None, "Missing model name in request."),
        ("GET", "/v1/foo", None, "Malformed request: GET /v1/foo"),
        ("POST", "/v1/models", "", "Malformed request: POST /v1/models"),
        ("GET", "/v1/models/m:predict", None, "Malformed request: GET /v1/models/m:predict"),
        (
            "POST",
            f"{THREE}:predict",
            "",
            "JSON Parse error: The document is empty",
        ),
        (
            "POST",
            f"{THREE}:predict",
            "instances = [1, 2]",
            "JSON Parse error: Invalid value. at offset: 0",
        ),
        ("POST", f"{THREE}:predict", "{}", "Missing 'inputs' or 'instances' key"),
    ],
)
def test_an_incorrect_url_or_body(
    call: Call, method: str, path: str, body: str | None, error: str
) -> None:
    assert call(path, body, method) == (400, {"error": error})
