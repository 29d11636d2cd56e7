"""The Open Inference Protocol, tested with Triton's client and against its publication."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from tensorflow_serving.apis import prediction_log_pb2
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from ..models import stages_model
from .inference_client import InferenceClient
from .servers import Stubs

SIGNATURES = ("columnar", "columnar_late")


class Examples(tf.Module):
    """A model whose default signature takes tf.Examples; `kinds` has other datatypes."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def score(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([], tf.float32)})
        return {"score": 2 * parsed["x"]}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], dtype, dtype.name)
            for dtype in (
                *(tf.bool, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int8, tf.int16),
                *(tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.float64),
            )
        ]
    )
    def kinds(self, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {f"{value.dtype.name}_out": tf.identity(value) for value in inputs}


@pytest.fixture(scope="module", name="logs")
def _logs(log_folder: Any) -> Path:
    return log_folder()


@pytest.fixture(scope="module", name="stubs")
def _stubs(
    tmp_path_factory: pytest.TempPathFactory, serve: Any, stages_path: Path, logs: Path
) -> Stubs:
    """Stubs of the models "staged" and "examples", which log every request."""
    path, module = tmp_path_factory.mktemp("protocol"), Examples()
    signatures = {"serving_default": module.score, "kinds": module.kinds}
    tf.saved_model.save(module, str(path / "4"), signatures=signatures)
    serve(
        path,
        name="examples",
        fields=f"""logging_config {{
        log_collector_config {{ filename_prefix: "{logs}/examples" }}
        sampling_config {{ sampling_rate: 1 }} }}""",
    )
    return serve(stages_path, name="staged")


@pytest.fixture(scope="module", name="server")
def _server(stubs: Stubs) -> ServerProcess:
    return stubs.server


@pytest.fixture(scope="module", name="client")
def _client(server: ServerProcess) -> InferenceClient:
    return InferenceClient(server)


def columns(seed: int, users: int = 1, items: int = 20, length: int = 3) -> dict[str, Any]:
    return stages_model.inputs(np.random.default_rng(seed), users, items, length)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_user_sent_once_gets_the_scores_of_predict(client, stubs, signature):
    sent = columns(1)
    expected = stubs.predict(sent, signature_name=signature)
    assert expected["score"].shape == (20,)
    found = client.scores(sent, signature)
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)
    assert [tag.encode() if isinstance(tag, str) else tag for tag in found["tag"]] == [
        *expected["tag"]
    ]


KINDS = {
    dtype.name: np.array(values, dtype.as_numpy_dtype)
    for dtype, values in {
        tf.bool: [True, False],
        tf.uint8: [0, 255],
        tf.uint16: [0, 65535],
        tf.uint32: [0, 2**32 - 1],
        tf.uint64: [0, 2**64 - 1],
        tf.int8: [-128, 127],
        tf.int16: [-(2**15), 2**15 - 1],
        tf.int32: [-(2**31), 2**31 - 1],
        tf.int64: [-(2**63), 2**63 - 1],
        tf.float16: [0.5, -2],
        tf.bfloat16: [0.5, -2],
        tf.float32: [0.1, -1e30],
        tf.float64: [0.1, -1e300],
    }.items()
}


@pytest.mark.parametrize(
    ("change", "options", "code", "words"),
    [
        ({"unknown": np.zeros(1)}, {}, "INVALID_ARGUMENT", ["unknown"]),
        ({}, {"model": "nobody"}, "NOT_FOUND", ["nobody"]),
        ({}, {"signature": "late"}, "FAILED_PRECONDITION", ["late"]),
        ({}, {"sequence_id": 5}, "INVALID_ARGUMENT", ["sequence"]),
    ],
)
def test_mistakes_in_it_are_named(client, change, options, code, words):
    options = {"signature": "columnar"} | options
    status, message = client.error(columns(6) | change, **options)
    assert status == f"StatusCode.{code}"
    for word in words:
        assert word in message


def test_server_and_models_are_described_live_and_ready(client):
    triton = client.triton
    assert triton.is_server_live()
    assert triton.is_server_ready()
    ready = [("staged",), ("staged", "1"), ("staged", "2"), ("nobody",)]
    assert [triton.is_model_ready(*model) for model in ready] == [True, True, False, False]
    found = triton.get_server_metadata()
    assert (found.name, bool(found.version)) == ("colcast", True)
    assert list(found.extensions) == ["parameters"]


def test_model_metadata_is_that_of_the_signature(client):
    found = client.metadata("staged", "columnar_late")
    assert (found["name"], found["platform"]) == ("staged", "tensorflow_savedmodel")
    assert found["versions"] == ["1"]
    inputs = {it["name"]: (it["datatype"], it["shape"]) for it in found["inputs"]}
    assert inputs["age"] == ("INT64", [1])
    assert inputs["city"] == ("BYTES", [1])
    assert inputs["history"] == ("INT64", [1, -1])
    assert inputs["shape"] == ("FP32", [-1, 2])
    assert list(inputs) == sorted(inputs)
    outputs = {it["name"]: (it["datatype"], it["shape"]) for it in found["outputs"]}
    assert outputs == {"score": ("FP32", [-1]), "tag": ("BYTES", [-1])}


def test_model_metadata_without_a_signature_is_that_of_the_default_one(client):
    found = client.metadata("examples", "")
    assert [it["name"] for it in found["inputs"]] == ["examples"]
    with pytest.raises(InferenceServerException) as raised:
        client.metadata("staged", "")
    assert "columnar_late" in raised.value.message()  # lists the existing signatures
    with pytest.raises(InferenceServerException) as raised:
        client.triton.get_model_metadata("nobody")
    assert raised.value.status() == "StatusCode.NOT_FOUND"


def test_every_datatype_survives_a_round_trip_and_is_logged_as_predict(logs, client, wait_until):
    answer = client.infer(KINDS, "kinds", model="examples")

    def logged() -> list[prediction_log_pb2.PredictLog]:
        logs_ = (
            prediction_log_pb2.PredictionLog.FromString(record).predict_log
            for file in logs.iterdir()
            for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
        )
        return [log for log in logs_ if log.request.model_spec.signature_name == "kinds"]

    wait_until(logged)
    log = logged()[0]
    for name, sent in KINDS.items():
        for tensor in (log.request.inputs[name], log.response.outputs[f"{name}_out"]):
            assert tf.make_ndarray(tensor).tobytes() == sent.tobytes(), name
        answered = answer.as_numpy(f"{name}_out")
        assert (answered.dtype, answered.tobytes()) == (sent.dtype, sent.tobytes()), name


def test_our_proto_is_tritons(tmp_path):
    """All names, numbers and types match the published protocol."""
    protos = Path(__file__).parents[2] / "server/protos"
    output = tmp_path / "set.binpb"
    command = ["protoc", f"--proto_path={protos}", f"--descriptor_set_out={output}"]
    subprocess.run([*command, protos / "open_inference.proto"], check=True)
    pool = DescriptorPool()
    pool.Add(FileDescriptorSet.FromString(output.read_bytes()).file[0])
    ours = pool.FindServiceByName("inference.GRPCInferenceService")
    theirs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for method in ours.methods:
        published = theirs.methods_by_name[method.name]
        assert_same_message(method.input_type, published.input_type)
        assert_same_message(method.output_type, published.output_type)


def assert_same_message(ours: Any, theirs: Any) -> None:
    assert ours.full_name == theirs.full_name
    assert {f.name: (f.number, f.type, f.is_repeated) for f in ours.fields} == {
        f.name: (f.number, f.type, f.is_repeated) for f in theirs.fields
    }
    for field in ours.fields:
        if field.message_type is not None:
            assert_same_message(field.message_type, theirs.fields_by_name[field.name].message_type)
