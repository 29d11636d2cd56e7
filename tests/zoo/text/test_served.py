"""The encoder behind the server, asked with TensorFlow Serving's own stubs."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


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
