"""Compares the client's messages with protobuf's and TensorFlow's, in both directions."""

import contextlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import (
    DecodeError,
    InputError,
    SchemaError,
    Tensor,
    decode_tensor,
    encode_predict_request,
)
from colcast.client.columns._decode import decode_predict_response
from colcast.client.columns._dtypes import (
    BFLOAT16,
    BY_NAME,
    FLOAT,
    INT64,
    STRING,
    TYPED_FIELDS,
    DType,
    bfloat16_bits,
)
from colcast.client.request._metadata import decode_metadata_response
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def response(**outputs: tensor_pb2.TensorProto) -> predict_pb2.PredictResponse:
    """A PredictResponse that has these outputs."""
    message = predict_pb2.PredictResponse()
    message.model_spec.name = "m"
    message.model_spec.version.value = 7
    for name, tensor in outputs.items():
        message.outputs[name].CopyFrom(tensor)
    return message


def tensor_of(dtype: DType, shape: Any, **fields: Any) -> Any:
    tensor = tensor_pb2.TensorProto(dtype=dtype.number, **fields)
    tensor.tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return tensor


NUMERIC = sorted(set(BY_NAME) - {"string", "bfloat16"})


@given(st.data(), st.booleans())
def test_numbers_of_every_dtype_survive_bit_for_bit(data: st.DataObject, by_one: bool):
    """As the client writes them, and as TensorFlow may, one by one."""
    dtype = BY_NAME[data.draw(st.sampled_from(NUMERIC))]
    values = data.draw(hnp.arrays(dtype.storage, shapes))
    request = encode_predict_request("m", "s", {"x": Tensor(dtype, values)})
    tensor = predict_pb2.PredictRequest.FromString(request).inputs["x"]
    if by_one:
        stored = values.view(np.uint16) if dtype.name == "float16" else values
        fields = {TYPED_FIELDS[dtype.typed_field]: stored.ravel().tolist()}
        tensor = tensor_of(dtype, values.shape, **fields)
    outputs = decode_predict_response(response(x=tensor).SerializeToString()).outputs
    for found in (outputs["x"], tf.make_ndarray(tensor)):
        assert (found.dtype, found.shape) == (values.dtype, values.shape)
        np.testing.assert_array_equal(found, values)
    assert by_one or bits(tf.make_ndarray(tensor)) == bits(outputs["x"]) == bits(values)


def test_tensors_that_are_not_supported_are_refused():
    complex_numbers = tf.make_tensor_proto([1j], tf.complex64)
    with pytest.raises(DecodeError, match="dtype number 8 is not one"):
        decode_predict_response(response(x=complex_numbers).SerializeToString())
    head = tensor_of(FLOAT, [2])
    unpacked = b"".join(b"\x2d" + np.float32(value).tobytes() for value in (1.5, 2.5))
    data = head.SerializeToString() + unpacked
    assert tensor_pb2.TensorProto.FromString(data).float_val == [1.5, 2.5]
    with pytest.raises(DecodeError, match="'x' has values in an encoding that is not supported"):
        decode_tensor(data, "x")


def test_who_answered_strings_bfloat16_and_a_last_value_that_fills_the_shape():
    message = response(
        i=tensor_of(INT64, [4], int64_val=[4, -5]),
        s=tf.make_tensor_proto([[b"a", b""], [b"\xff", b"b" * 400]]),
        h=tf.make_tensor_proto([1.5, -2.0], tf.bfloat16),
    )
    found = decode_predict_response(message.SerializeToString())
    assert (found.model.name, found.model.version) == ("m", 7)
    outputs = found.outputs
    assert outputs["s"].tolist() == [[b"a", b""], [b"\xff", b"b" * 400]]
    assert outputs["h"].dtype == np.float32
    assert outputs["h"].tolist() == [1.5, -2.0]
    assert outputs["i"].tolist() == [4, -5, -5, -5]


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_or_refused(data: bytes):
    with contextlib.suppress(DecodeError):
        decode_predict_response(data)


def test_every_truncation_of_an_answer_is_refused_or_shorter():
    whole = response(x=tf.make_tensor_proto(np.arange(5.0)), y=tf.make_tensor_proto([1, 300]))
    data = whole.SerializeToString(deterministic=True)
    for end in range(len(data)):
        try:
            found = decode_predict_response(data[:end])
        except DecodeError:
            continue
        assert len(found.outputs) < 2 or found.model.version is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tensor_content": b"123"}, "3 bytes of float32, not a multiple of 4"),
        ({"tensor_content": b"12341234"}, r"2 values, but its shape \[3\] needs 3"),
        ({"float_val": [1.0] * 4}, r"4 values, but its shape \[3\]"),
    ],
)
def test_values_that_do_not_fit_the_shape(fields: dict[str, Any], message: str):
    with pytest.raises(DecodeError, match=message):
        decode_tensor(tensor_of(FLOAT, [3], **fields).SerializeToString(), "x")


def parsed(request: bytes) -> dict[str, Any]:
    """The request's inputs as arrays, read by protobuf and TensorFlow."""
    message = predict_pb2.PredictRequest.FromString(request)
    return {name: tf.make_ndarray(tensor) for name, tensor in message.inputs.items()}


def bits(values: Any) -> bytes:
    return np.ascontiguousarray(values).tobytes()


@given(hnp.arrays(object, shapes, elements=st.binary(max_size=300), fill=st.nothing()))
def test_strings_survive_with_any_bytes_and_lengths(values: Any):
    found = parsed(encode_predict_request("m", "s", {"x": Tensor(STRING, values)}))["x"]
    assert found.shape == values.shape
    assert found.tolist() == values.tolist()


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=32)))
def test_bfloat16_is_rounded_as_tensorflow_rounds(values: Any):
    tensor = Tensor(BFLOAT16, bfloat16_bits(values))
    found = parsed(encode_predict_request("m", "s", {"x": tensor}))["x"]
    expected = tf.cast(values, tf.bfloat16).numpy()
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@given(st.data())
def test_one_value_stands_for_a_whole_shape(data: st.DataObject):
    dtype = BY_NAME[data.draw(st.sampled_from([*NUMERIC, "string"]))]
    if dtype is STRING:
        values = np.array([data.draw(st.binary(max_size=9))], object)
    else:
        values = data.draw(hnp.arrays(dtype.storage, 1))
    request = encode_predict_request("m", "s", {"x": Tensor(dtype, values, (5, 2))})
    found = parsed(request)["x"]
    assert found.shape == (5, 2)
    assert bits(found) == bits(np.full((5, 2), values[0], values.dtype)) or dtype is STRING
    assert dtype is not STRING or set(found.ravel()) == {values[0]}


@pytest.mark.parametrize(
    "values",
    [np.array(["a", "Łódź"]), np.array([b"a", b"bc"]), ["a", b"b"], np.array(["a"], object)],
    ids=["unicode", "bytes", "list", "object"],
)
def test_text_of_every_numpy_kind_becomes_utf8(values: Any):
    found = parsed(encode_predict_request("m", "s", {"x": values}))["x"]
    expected = [v.encode() if isinstance(v, str) else bytes(v) for v in list(values)]
    assert found.tolist() == expected


def test_arrays_need_not_be_contiguous_or_little_endian():
    values = np.arange(12, dtype=">f4").reshape(3, 4)[:, ::2]
    found = parsed(encode_predict_request("m", "s", {"x": values}))["x"]
    assert found.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]


def test_model_spec_and_output_filter():
    request = encode_predict_request("m", "s", {}, version=4, output_filter=["a", "b"])
    message = predict_pb2.PredictRequest.FromString(request)
    assert (message.model_spec.name, message.model_spec.signature_name) == ("m", "s")
    assert message.model_spec.version.value == 4
    assert list(message.output_filter) == ["a", "b"]
    labelled = encode_predict_request("m", "s", {}, version_label="canary")
    spec = predict_pb2.PredictRequest.FromString(labelled).model_spec
    assert spec.version_label == "canary"
    assert not spec.HasField("version")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"day": np.array(["2024-01-01"], "M8[D]")}, "feature 'day': NumPy dtype datetime64"),
        ({"city": np.array(["a", 3], object)}, r"feature 'city': expected str or bytes, got 3"),
    ],
)
def test_values_that_tensorflow_cannot_hold_are_refused(columns: Any, message: str):
    with pytest.raises(InputError, match=message):
        encode_predict_request("m", "s", columns)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "the metadata of model 'm' has no signatures"),
        (["a", "b"], "model 'm' has only signatures with tensors of a dtype that cannot be sent: "),
    ],
)
def test_a_model_without_a_signature_to_call(names: list[str], message: str):
    found = get_model_metadata_pb2.GetModelMetadataResponse()
    found.model_spec.name = "m"
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name in names:
        signatures.signature_def[name].inputs["x"].dtype = tf.variant.as_datatype_enum
    found.metadata["signature_def"].Pack(signatures)
    with pytest.raises(SchemaError, match=f"^{message}{', '.join(names)}$"):
        decode_metadata_response(found.SerializeToString())
