"""The REST calls of TensorFlow Serving's documentation, on the models its examples use.

Codes and bodies were written down from the documentation: the page on the REST API, which uses
half_plus_three (y = x / 2 + 3), and the page on Docker, which uses half_plus_two. Bodies are
compared byte for byte where the page shows a whole answer, and as JSON elsewhere.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

v1 = tf.compat.v1

Call = Callable[..., tuple[int, str]]


def save_half_plus_three(directory: Path) -> None:
    """TensorFlow Serving's half_plus_three, as far as the page's calls need it."""
    with v1.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([1], tf.float32)})
        x = tf.identity(parsed["x"], name="x")
        y = v1.get_variable("a", initializer=0.5) * x + v1.get_variable("b", initializer=3.0)
        session.run(v1.global_variables_initializer())
        utils = v1.saved_model.signature_def_utils
        info = v1.saved_model.build_tensor_info
        builder = v1.saved_model.Builder(str(directory))
        builder.add_meta_graph_and_variables(
            session,
            [v1.saved_model.tag_constants.SERVING],
            signature_def_map={
                "serving_default": utils.build_signature_def(
                    {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"
                ),
                "tensorflow/serving/regress": utils.build_signature_def(
                    {"inputs": info(examples)}, {"outputs": info(y)}, "tensorflow/serving/regress"
                ),
            },
        )
        builder.save()


class Tensors(tf.Module):
    """The inputs that the page describes row and column format with."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "tag"),
            tf.TensorSpec([None, 5], tf.int64, "signal"),
            tf.TensorSpec([None, 2, 2], tf.int64, "sensor"),
        ]
    )
    def echo(self, tag: tf.Tensor, signal: tf.Tensor, sensor: tf.Tensor) -> dict[str, tf.Tensor]:
        """What came, under names of its own."""
        return {"label": tag + "!", "total": tf.reduce_sum(signal, 1), "image_bytes": tag} | {
            "flipped": tf.reverse(sensor, [1])
        }


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """A function of a path and, for POST, the body; it returns the code and the answer's body."""
    directory = tmp_path_factory.mktemp("documented")
    save_half_plus_three(directory / "saved_model_half_plus_three" / "123")
    maker = Path(__file__).with_name("half_plus_two.py")
    two = directory / "half_plus_two"
    subprocess.run([sys.executable, maker, two], check=True, capture_output=True)
    tensors = Tensors()
    tf.saved_model.save(tensors, str(directory / "tensors" / "1"), signatures=tensors.echo)
    names = ["saved_model_half_plus_three", "half_plus_two", "tensors"]
    config = directory / "models.config"
    entries = [
        f'config {{ name: "{n}" base_path: "{directory / n}" model_platform: "tensorflow" }}'
        for n in names
    ]
    entries[0] = entries[0].replace(" }", ' version_labels { key: "stable" value: 123 } }')
    config.write_text(f"model_config_list {{ {' '.join(entries)} }}")
    flags = [f"--model_config_file={config}", "--rest_api_port=-1"]
    flags.append("--allow_version_labels_for_unavailable_models")  # at the start none is there yet
    with ServerProcess(flags=flags) as server:

        def send(path: str, body: str | None = None, method: str = "") -> tuple[int, str]:
            connection = http.client.HTTPConnection(server.rest_target, timeout=60)
            connection.request(method or ("GET" if body is None else "POST"), path, body)
            response = connection.getresponse()
            text = response.read().decode()
            assert response.getheader("Content-Type") == "application/json"
            connection.close()
            return response.status, text

        yield send


THREE = "/v1/models/saved_model_half_plus_three"
STATUS = """{
 "model_version_status": [
  {
   "version": "123",
   "state": "AVAILABLE",
   "status": {
    "error_code": "OK",
    "error_message": ""
   }
  }
 ]
}
"""


@pytest.mark.parametrize("where", ["", "/versions/123", "/labels/stable"])
def test_the_status_of_a_model(call: Call, where: str) -> None:
    assert call(THREE + where) == (200, STATUS)


@pytest.mark.parametrize("where", ["", "/versions/123", "/labels/stable"])
def test_a_predict_call(call: Call, where: str) -> None:
    answer = call(f"{THREE}{where}:predict", '{"instances": [1.0,2.0,5.0]}')
    assert answer == (200, '{\n    "predictions": [3.5, 4.0, 5.5]\n}')


def test_a_regress_call(call: Call) -> None:
    body = '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}'
    assert call(f"{THREE}:regress", body) == (200, '{\n    "results": [3.5, 4.0]\n}')


def test_a_model_that_is_not_there(call: Call) -> None:
    code, text = call("/v1/models/half:predict", '{"instances": [1.0,5.0]}')
    assert code == 404
    # The page's whole message; the server may go on to say what it does serve.
    assert text.startswith('{ "error": "Servable not found for request: Latest(half)')


def test_the_predict_call_of_the_page_on_docker(call: Call) -> None:
    answer = call("/v1/models/half_plus_two:predict", '{"instances": [1.0, 2.0, 5.0]}')
    assert answer[0] == 200
    assert json.loads(answer[1]) == {"predictions": [2.5, 3.0, 4.5]}


def test_classification(call: Call) -> None:
    body = {"signature_name": "classify_x_to_y", "examples": [{"x": 10.0}, {"x": 20.0}]}
    code, text = call("/v1/models/half_plus_two:classify", json.dumps(body))
    assert (code, json.loads(text)) == (200, {"results": [[["", 7.0]], [["", 12.0]]]})


def test_the_context_is_shared_by_all_examples(call: Call) -> None:
    body = {"signature_name": "regress_x_to_y", "context": {"x": 80.0}, "examples": [{}, {}]}
    code, text = call("/v1/models/half_plus_two:regress", json.dumps(body))
    assert (code, json.loads(text)) == (200, {"results": [42.0, 42.0]})


def test_the_metadata_of_a_model(call: Call) -> None:
    code, text = call(f"{THREE}/metadata")
    metadata = json.loads(text)
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
    code, text = call(path, json.dumps(ROWS))
    assert code == 200, text
    rows = json.loads(text)["predictions"]
    assert rows[0] == {
        "label": "foo!",
        "total": 15,
        "image_bytes": {"b64": "Zm9v"},
        "flipped": [[3, 4], [1, 2]],
    }
    code, text = call(path, json.dumps(COLUMNS))
    assert code == 200, text
    columns = json.loads(text)["outputs"]
    assert columns == {name: [row[name] for row in rows] for name in rows[0]}


def test_binary_values_are_base64(call: Call) -> None:
    inputs = {**COLUMNS["inputs"], "tag": [{"b64": "aW1hZ2UgYnl0ZXM="}, "text"]}
    code, text = call("/v1/models/tensors:predict", json.dumps({"inputs": inputs}))
    outputs = json.loads(text)["outputs"]
    assert (code, outputs["label"]) == (200, ["image bytes!", "text!"])
    assert outputs["image_bytes"] == [{"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": "dGV4dA=="}]


def test_what_is_not_finite(call: Call) -> None:
    body = '{"instances": [NaN, Infinity, -Infinity]}'
    answer = '{\n    "predictions": [NaN, Infinity, -Infinity]\n}'
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
    assert call(path, body, method) == (
        400,
        json.dumps({"error": error}).replace("{", "{ ")[:-1] + " }",
    )
