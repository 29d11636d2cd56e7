"""The gRPC and REST calls of TensorFlow Serving's documentation, on the models its examples use.

The expected answers come from the documentation: the comments in apis/*.proto, the pages on
SignatureDefs, on the REST API and on Docker, and the definitions of half_plus_two and of
half_plus_three (y = x / 2 + 3). Bodies of REST are compared as JSON: the pages and
tensorflow_model_server differ in white space.
"""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

PREDICTION = prediction_service_pb2_grpc.PredictionServiceStub
MODELS = model_service_pb2_grpc.ModelServiceStub

# Method -> its stub, request and response.
METHODS: dict[str, tuple[type, type[Message], type[Message]]] = {
    name: (stub, getattr(messages, f"{kind}Request"), getattr(messages, f"{kind}Response"))
    for name, stub, messages, kind in (
        ("Predict", PREDICTION, predict_pb2, "Predict"),
        ("Classify", PREDICTION, classification_pb2, "Classification"),
        ("Regress", PREDICTION, regression_pb2, "Regression"),
        ("MultiInference", PREDICTION, inference_pb2, "MultiInference"),
        ("GetModelMetadata", PREDICTION, get_model_metadata_pb2, "GetModelMetadata"),
        ("GetModelStatus", MODELS, get_model_status_pb2, "GetModelStatus"),
        ("HandleReloadConfigRequest", MODELS, model_management_pb2, "ReloadConfig"),
    )
}

Call = Callable[[str, str], Message]
Rest = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def call(target: str) -> Call:
    """A function that calls a method with a request in text form; it raises grpc.RpcError."""
    channel = grpc.insecure_channel(target)

    def run(method: str, text: str) -> Message:
        stub, request_type, _ = METHODS[method]
        return getattr(stub(channel), method)(text_format.Parse(text, request_type()), timeout=120)

    return run


X_OF_1_2_5 = """
  key: "x" value { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
                   float_val: 1 float_val: 2 float_val: 5 }"""
Y_OF_1_2_5 = """
  key: "y" value { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
                   float_val: 2.5 float_val: 3 float_val: 4.5 }"""
X_IS_2 = 'features { feature { key: "x" value { float_list { value: 2 } } } }'
X_IS_20 = 'features { feature { key: "x" value { float_list { value: 20 } } } }'
TWO_AND_TWENTY = f"example_list {{ examples {{ {X_IS_2} }} examples {{ {X_IS_20} }} }}"
CONTEXT_OF_2 = f"""example_list_with_context {{
  context {{ {X_IS_2} }} examples {{}} examples {{ {X_IS_20} }} }}"""


def answered(signature_name: str) -> str:
    """The model_spec of an answer."""
    return f"""model_spec {{ name: "half_plus_two" version {{ value: 123 }}
                             signature_name: "{signature_name}" }}"""


@pytest.mark.parametrize(
    ("method", "request_text", "response_text"),
    [
        pytest.param(
            "Predict",
            f'model_spec {{ name: "half_plus_two" }} inputs {{ {X_OF_1_2_5} }}',
            f"outputs {{ {Y_OF_1_2_5} }} {answered('serving_default')}",
            id="Predict: the default signature",
        ),
        pytest.param(
            "Predict",
            f"""model_spec {{ name: "half_plus_two" version {{ value: 123 }}
                              signature_name: "serving_default" }}
                inputs {{ {X_OF_1_2_5} }} output_filter: "y" """,
            f"outputs {{ {Y_OF_1_2_5} }} {answered('serving_default')}",
            id="Predict: version, signature and output by name",
        ),
        pytest.param(
            "Classify",
            f"""model_spec {{ name: "half_plus_two" signature_name: "classify_x_to_y" }}
                input {{ {TWO_AND_TWENTY} }}""",
            f"""result {{ classifications {{ classes {{ score: 3 }} }}
                          classifications {{ classes {{ score: 12 }} }} }}
                {answered("classify_x_to_y")}""",
            id="Classify: example_list",
        ),
        pytest.param(
            "Regress",
            f"""model_spec {{ name: "half_plus_two" signature_name: "regress_x_to_y" }}
                input {{ {TWO_AND_TWENTY} }}""",
            f"""result {{ regressions {{ value: 3 }} regressions {{ value: 12 }} }}
                {answered("regress_x_to_y")}""",
            id="Regress: example_list",
        ),
        pytest.param(
            "Regress",
            f"""model_spec {{ name: "half_plus_two" signature_name: "regress_x_to_y2" }}
                input {{ {CONTEXT_OF_2} }}""",
            f"""result {{ regressions {{ value: 4 }} regressions {{ value: 13 }} }}
                {answered("regress_x_to_y2")}""",
            id="Regress: example_list_with_context, the example's own feature counts",
        ),
        pytest.param(
            "MultiInference",
            f"""tasks {{ model_spec {{ name: "half_plus_two" signature_name: "regress_x_to_y" }}
                         method_name: "tensorflow/serving/regress" }}
                tasks {{ model_spec {{ name: "half_plus_two" signature_name: "classify_x_to_y" }}
                         method_name: "tensorflow/serving/classify" }}
                input {{ example_list {{ examples {{ {X_IS_2} }} }} }}""",
            f"""results {{ {answered("regress_x_to_y")}
                           regression_result {{ regressions {{ value: 3 }} }} }}
                results {{ {answered("classify_x_to_y")}
                           classification_result {{
                             classifications {{ classes {{ score: 3 }} }} }} }}""",
            id="MultiInference: a regression and a classification",
        ),
        pytest.param(
            "GetModelStatus",
            'model_spec { name: "half_plus_two" }',
            "model_version_status { version: 123 state: AVAILABLE status {} }",
            id="GetModelStatus: all versions",
        ),
        pytest.param(
            "GetModelStatus",
            'model_spec { name: "half_plus_two" version { value: 123 } }',
            "model_version_status { version: 123 state: AVAILABLE status {} }",
            id="GetModelStatus: one version",
        ),
    ],
)
def test_a_documented_call_gets_the_documented_answer(
    call: Call, method: str, request_text: str, response_text: str
) -> None:
    assert call(method, request_text) == text_format.Parse(response_text, METHODS[method][2]())


def test_the_metadata_holds_the_signatures(call: Call) -> None:
    response = call(
        "GetModelMetadata",
        'model_spec { name: "half_plus_two" } metadata_field: "signature_def"',
    )
    expected = 'name: "half_plus_two" version { value: 123 }'
    assert response.model_spec == text_format.Parse(expected, type(response.model_spec)())
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert {
        name: (one.method_name, set(one.inputs), set(one.outputs))
        for name, one in signatures.signature_def.items()
        if not name.startswith("__")
    } == {
        "serving_default": ("tensorflow/serving/predict", {"x"}, {"y"}),
        "regress_x_to_y": ("tensorflow/serving/regress", {"inputs"}, {"outputs"}),
        "regress_x_to_y2": ("tensorflow/serving/regress", {"inputs"}, {"outputs"}),
        "regress_x2_to_y3": ("tensorflow/serving/regress", {"inputs"}, {"outputs"}),
        "classify_x_to_y": ("tensorflow/serving/classify", {"inputs"}, {"scores"}),
    }


def spec(more: str = "", name: str = "half_plus_two") -> str:
    return f'model_spec {{ name: "{name}" {more} }}'


def signed(signature_name: str) -> str:
    return spec(f'signature_name: "{signature_name}"')


GIVEN = f"input {{ {TWO_AND_TWENTY} }}"
RELOAD = "config {{ model_config_list {{ config {{ {} }} }} }}"


@pytest.mark.parametrize(
    ("method", "request_text", "code"),
    [
        ("Predict", "", "INVALID_ARGUMENT"),
        ("Predict", spec(name="none"), "NOT_FOUND"),
        ("Predict", spec("version { value: 124 }"), "NOT_FOUND"),
        ("Predict", signed("none"), "FAILED_PRECONDITION"),
        ("Predict", spec(), "INVALID_ARGUMENT"),
        ("Classify", "", "INVALID_ARGUMENT"),
        ("Classify", f"{signed('none')} {GIVEN}", "INVALID_ARGUMENT"),
        ("Classify", f"{signed('regress_x_to_y')} {GIVEN}", "INVALID_ARGUMENT"),
        ("Regress", f"{spec()} {GIVEN}", "INVALID_ARGUMENT"),
        ("Regress", signed("regress_x_to_y"), "INVALID_ARGUMENT"),
        ("Regress", f"{signed('regress_x2_to_y3')} {GIVEN}", "INVALID_ARGUMENT"),
        (
            "MultiInference",
            f'tasks {{ {spec()} method_name: "tensorflow/serving/predict" }} {GIVEN}',
            "UNIMPLEMENTED",
        ),
        ("GetModelMetadata", spec(), "INVALID_ARGUMENT"),
        ("GetModelMetadata", f'{spec(name="none")} metadata_field: "signature_def"', "NOT_FOUND"),
        ("GetModelStatus", spec(name="none"), "NOT_FOUND"),
        ("GetModelStatus", spec("version { value: 7 }"), "NOT_FOUND"),
        *(
            ("HandleReloadConfigRequest", RELOAD.format(model), "INVALID_ARGUMENT")
            for model in ("", 'name: "a" model_platform: "tensorflow"')  # no name, no base path
        ),
    ],
)
def test_a_wrong_call_gets_the_documented_code(
    call: Call, method: str, request_text: str, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        call(method, request_text)
    assert raised.value.code().name == code, raised.value.details()


@pytest.fixture(scope="module")
def rest(rest_target: str) -> Rest:
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
WHERE = ("", "/versions/123", "/labels/stable")
STATUS = {
    "model_version_status": [
        {
            "version": "123",
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
    ]
}


HALF = "/v1/models/half_plus_two"
EXAMPLES = [{"x": 10.0}, {"x": 20.0}]
WITH_CONTEXT = {"context": {"x": 80.0}, "examples": [{}, {}]}


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        *((THREE + where, None, STATUS) for where in WHERE),
        *(
            (f"{THREE}{where}:predict", {"instances": [1, 2, 5]}, {"predictions": [3.5, 4, 5.5]})
            for where in WHERE
        ),
        (
            f"{THREE}:predict",
            {"instances": [math.nan, math.inf, -math.inf]},
            {"predictions": ["NaN", "Infinity", "-Infinity"]},
        ),
        (
            f"{THREE}:regress",
            {"signature_name": "tensorflow/serving/regress", "examples": EXAMPLES},
            {"results": [8.0, 13.0]},
        ),
        (
            f"{HALF}:classify",
            {"signature_name": "classify_x_to_y", "examples": EXAMPLES},
            {"results": [[["", 7.0]], [["", 12.0]]]},
        ),
        (
            f"{HALF}:regress",
            {"signature_name": "regress_x_to_y", **WITH_CONTEXT},
            {"results": [42.0, 42.0]},
        ),
    ],
)
def test_a_documented_rest_call_gets_the_documented_answer(
    rest: Rest, path: str, body: Any, answer: Any
) -> None:
    assert rest(path, body and json.dumps(body)) == (200, answer)


def test_a_missing_model(rest: Rest) -> None:
    code, answer = rest("/v1/models/half:predict", '{"instances": [1.0,5.0]}')
    assert code == 404
    # The page's whole message; the server may append the versions that it serves.
    assert answer["error"].startswith("Servable not found for request: Latest(half)")


def test_the_metadata_of_a_model(rest: Rest) -> None:
    code, metadata = rest(f"{THREE}/metadata")
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


def test_row_and_column_format(rest: Rest) -> None:
    path = "/v1/models/tensors:predict"
    code, answer = rest(path, json.dumps(ROWS))
    assert code == 200, answer
    rows = answer["predictions"]
    assert rows[0] == {
        "label": "foo!",
        "total": 15,
        "image_bytes": {"b64": "Zm9v"},
        "flipped": [[3, 4], [1, 2]],
    }
    code, answer = rest(path, json.dumps(COLUMNS))
    assert code == 200, answer
    columns = answer["outputs"]
    assert columns == {name: [row[name] for row in rows] for name in rows[0]}


def test_binary_values_are_base64(rest: Rest) -> None:
    inputs = {**COLUMNS["inputs"], "tag": [{"b64": "aW1hZ2UgYnl0ZXM="}, "text"]}
    code, answer = rest("/v1/models/tensors:predict", json.dumps({"inputs": inputs}))
    outputs = answer["outputs"]
    assert (code, outputs["label"]) == (200, ["image bytes!", "text!"])
    assert outputs["image_bytes"] == [{"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": "dGV4dA=="}]


@pytest.mark.parametrize(
    ("method", "path", "body", "error"),
    [
        ("GET", "/v1/foo", None, "Malformed request: GET /v1/foo"),
        ("POST", f"{THREE}:predict", "", "JSON Parse error: The document is empty"),
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
    rest: Rest, method: str, path: str, body: str | None, error: str
) -> None:
    assert rest(path, body, method) == (400, {"error": error})
