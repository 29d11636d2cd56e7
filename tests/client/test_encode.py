"""Requests, read back with protobuf's own parser and TensorFlow's own tensor conversion."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import InputError, Tensor, encode_predict_request
from colcast.client.columns._dtypes import BFLOAT16, BY_NAME, STRING, bfloat16_bits
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensorflow_serving.apis import predict_pb2

NUMERIC = sorted(set(BY_NAME) - {"string", "bfloat16"})
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def parsed(request: bytes) -> dict[str, Any]:
    """Input name -> array, by protobuf and TensorFlow."""
    message = predict_pb2.PredictRequest.FromString(request)
    return {name: tf.make_ndarray(tensor) for name, tensor in message.inputs.items()}


def bits(values: Any) -> bytes:
    return np.ascontiguousarray(values).tobytes()


@given(st.data())
def test_numbers_of_every_dtype_survive_bit_for_bit(data: st.DataObject) -> None:
    dtype = BY_NAME[data.draw(st.sampled_from(NUMERIC))]
    values = data.draw(hnp.arrays(dtype.storage, shapes))
    request = encode_predict_request("m", "s", {"x": Tensor(dtype, values)})
    tensor = predict_pb2.PredictRequest.FromString(request).inputs["x"]
    assert tensor.dtype == dtype.number
    found = tf.make_ndarray(tensor)
    assert found.shape == values.shape
    assert bits(found) == bits(values)


@given(hnp.arrays(object, shapes, elements=st.binary(max_size=300), fill=st.nothing()))
def test_strings_survive_with_any_bytes_and_lengths(values: Any) -> None:
    found = parsed(encode_predict_request("m", "s", {"x": Tensor(STRING, values)}))["x"]
    assert found.shape == values.shape
    assert found.tolist() == values.tolist()


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=32)))
def test_bfloat16_is_rounded_as_tensorflow_rounds(values: Any) -> None:
    tensor = Tensor(BFLOAT16, bfloat16_bits(values))
    found = parsed(encode_predict_request("m", "s", {"x": tensor}))["x"]
    expected = tf.cast(values, tf.bfloat16).numpy()
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@given(st.data())
def test_one_value_stands_for_a_whole_shape(data: st.DataObject) -> None:
    dtype = BY_NAME[data.draw(st.sampled_from([*NUMERIC, "string"]))]
    if dtype is STRING:
        values = np.array([data.draw(st.binary(max_size=9))], object)
    else:
        values = data.draw(hnp.arrays(dtype.storage, 1))
    request = encode_predict_request("m", "s", {"x": Tensor(dtype, values, (5, 2))})
    if dtype.name.startswith(("q", "complex")):  # make_ndarray reads these, TensorFlow fills them
        message = predict_pb2.PredictRequest.FromString(request).inputs["x"]
        found = tf.io.parse_tensor(message.SerializeToString(), message.dtype).numpy()
    else:
        found = parsed(request)["x"]
    assert found.shape == (5, 2)
    assert bits(found) == bits(np.full((5, 2), values[0], values.dtype)) or dtype is STRING
    assert dtype is not STRING or set(found.ravel()) == {values[0]}


@pytest.mark.parametrize(
    "values",
    [np.array(["a", "Łódź"]), np.array([b"a", b"bc"]), ["a", b"b"], np.array(["a"], object)],
    ids=["unicode", "bytes", "list", "object"],
)
def test_text_of_every_numpy_kind_becomes_utf8(values: Any) -> None:
    found = parsed(encode_predict_request("m", "s", {"x": values}))["x"]
    expected = [v.encode() if isinstance(v, str) else bytes(v) for v in list(values)]
    assert found.tolist() == expected


def test_arrays_need_be_neither_contiguous_nor_little_endian() -> None:
    values = np.arange(12, dtype=">f4").reshape(3, 4)[:, ::2]
    found = parsed(encode_predict_request("m", "s", {"x": values}))["x"]
    assert found.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]


def test_model_spec_and_output_filter() -> None:
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
def test_what_tensorflow_cannot_hold_is_refused(columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode_predict_request("m", "s", columns)
