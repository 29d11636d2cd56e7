"""The gRPC calls of TensorFlow Serving's documentation, on the model its examples use.

The expected answers come from the documentation: the comments in apis/*.proto, the pages on
SignatureDefs and on the REST API (each of its calls corresponds to one of these), and the
definition of half_plus_two.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from colcast.server import ServerProcess
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


@pytest.fixture(scope="module")
def call(target: str) -> Call:
    """A function that calls a method with a request in text form; it raises grpc.RpcError."""
    return make_call(target)


def make_call(target: str) -> Call:
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
    ],
)
def test_a_wrong_call_gets_the_documented_code(
    call: Call, method: str, request_text: str, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        call(method, request_text)
    assert raised.value.code().name == code, raised.value.details()


def reload(call: Call, name: str, base_path: Path, labels: str = "") -> None:
    """Makes this the only served model."""
    config = f"""config {{ model_config_list {{ config {{
        name: "{name}" base_path: "{base_path}" model_platform: "tensorflow"
        model_version_policy {{ specific {{ versions: 123 }} }} {labels} }} }} }}"""
    assert call("HandleReloadConfigRequest", config).status.error_code == 0


def test_a_new_config_replaces_models_and_labels_their_versions(models: Path) -> None:
    """From the page "serving_config"; a label can only be given to a version that is loaded."""
    x = f"inputs {{ {X_OF_1_2_5} }}"
    base_path = models / "half_plus_two"
    stable = 'version_labels { key: "stable" value: 123 }'
    with ServerProcess("half_plus_two", base_path) as server:
        call = make_call(server.target)
        with pytest.raises(grpc.RpcError) as raised:
            reload(call, "another", base_path, stable)
        assert raised.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        reload(call, "another", base_path)
        reload(call, "another", base_path, stable)
        answer = call("Predict", f'model_spec {{ name: "another" version_label: "stable" }} {x}')
        assert answer.model_spec.version.value == 123
        for spec in ('name: "half_plus_two"', 'name: "another" version_label: "canary"'):
            with pytest.raises(grpc.RpcError):
                call("Predict", f"model_spec {{ {spec} }} {x}")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param("config { model_config_list { config { } } }", id="no name"),
        pytest.param(
            'config { model_config_list { config { name: "a" model_platform: "tensorflow" } } }',
            id="no base path",
        ),
    ],
)
def test_a_wrong_config_is_refused_and_changes_nothing(call: Call, config: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        call("HandleReloadConfigRequest", config)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert call("Predict", f'model_spec {{ name: "half_plus_two" }} inputs {{ {X_OF_1_2_5} }}')
