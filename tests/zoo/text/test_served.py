"""The encoder behind the server; texts seen before are not encoded again."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client import TextClient
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from ...server.metrics_page import Metrics


@pytest.fixture(scope="module")
def predict(base_path):
    def call(outputs=(), **inputs):
        request = predict_pb2.PredictRequest(output_filter=outputs)
        request.model_spec.name = "encoder"
        request.model_spec.signature_name = "encode"
        for name, (value, dtype) in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
        return {k: tf.make_ndarray(v) for k, v in stub.Predict(request, timeout=60).outputs.items()}

    with (
        ServerProcess("encoder", base_path) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        yield call


def test_vectors_equal_tensorflows(predict, encode):
    texts = ["send the user once", "", "rank every candidate of the list", "Ünïcödé \x07 bell"]
    answer = predict(texts=(texts, tf.string))
    expected = encode(texts)
    assert answer.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(answer[name], values, atol=2e-6)


def test_outputs_and_the_length_are_chosen_by_the_request(predict, encode):
    texts, length = ["one two three four five"], 4
    answer = predict(["tokens"], texts=(texts, tf.string), max_seq_len=(length, tf.int32))
    assert answer.keys() == {"tokens"}
    assert answer["tokens"].tolist() == encode(texts, length)["tokens"].tolist()


def test_no_text_has_no_vector(predict):
    assert predict(["embeddings"], texts=([], tf.string))["embeddings"].shape == (0, 384)


def test_a_wrong_length_is_an_invalid_argument(predict):
    with pytest.raises(grpc.RpcError) as raised:
        predict(texts=(["text"], tf.string), max_seq_len=(1000, tf.int32))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "max_seq_len must be 2 to 512, got" in raised.value.details()


def test_it_is_warm_before_it_is_ready(base_path):
    with ServerProcess("encoder", base_path) as server:
        assert "warmed up with 2 requests" in server.log()


TEXTS = [
    "Cocoa prices fell.",
    "",
    b"broken \xff\xfe bytes\x00",
    "  spaces,\ttabs and a \u0007 bell ",
    "The ministers agreed to cut output " * 20,
    "\U0001f36b \u00fcn\u00efc\u00f6d\u00e9 \u6771\u4eac",
]
NEW = "Oil rose."


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    return publishing(tmp_path_factory.mktemp("monitoring"))


@pytest.fixture(scope="module")
def server(base_path, flags):
    with ServerProcess("encoder", base_path, flags) as process:
        yield process


def counted(server, store):
    """The numbers of texts found in the cache and computed."""
    samples = [s for s in Metrics(server).samples if s.labels.get("store") == store]
    names = [f":colcast:states_{what}_total" for what in ("found", "computed")]
    return [sum(sample.value for sample in samples if sample.name == name) for name in names]


POOLINGS = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("max_seq_len", [None, 8])
def test_vectors_equal_those_without_stores(server, encode, pooling, max_seq_len):
    spaces = [*POOLINGS].index(pooling) + (3 if max_seq_len else 0)  # texts for this case only
    *texts, new = [spaces * (b" " if isinstance(t, bytes) else " ") + t for t in (*TEXTS, NEW)]
    before = np.array(counted(server, "item"))
    with TextClient(server.target, "encoder") as client:
        for some in (texts, [*texts[::-1], new], texts[:2], [new]):
            vectors = client.encode(some, pooling=pooling, max_seq_len=max_seq_len)
            expected = encode(some, max_seq_len or 256)[POOLINGS[pooling]]
            np.testing.assert_allclose(vectors, expected, atol=2e-6)
        assert (counted(server, "item") - before).tolist() == [9, 7]
        client.encode(texts, pooling=pooling, max_seq_len=9)  # computes other vectors
        assert (counted(server, "item") - before).tolist() == [9, 13]
