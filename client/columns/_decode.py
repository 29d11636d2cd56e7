"""Decodes PredictResponse bytes to arrays, from tensor_content or typed fields."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.client._errors import DecodeError
from colcast.client.columns._dtypes import (
    BFLOAT16,
    STRING,
    TYPED_FIELDS,
    Array,
    DType,
    bfloat16_values,
    dtype_of_number,
)
from colcast.client.columns._values import object_array
from colcast.client.messages import has_unknown, parse, shape_of


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model that answered, from the response's model_spec."""

    name: str = ""
    version: int | None = None
    signature: str = ""


@dataclass(frozen=True, slots=True)
class PredictResponse:
    """A decoded answer: output name -> array, and the model that computed it."""

    outputs: dict[str, Array]
    model: ModelSpec


def decode_predict_response(data: bytes) -> PredictResponse:
    """Decodes one `tensorflow.serving.PredictResponse`.

    Returns:
        Numeric outputs as arrays of the tensor's shape and dtype (bfloat16 as float32),
        strings as object arrays of bytes.

    Raises:
        DecodeError: the message is malformed, or a tensor's values do not fit its shape.
    """
    response = parse("PredictResponse", data)
    outputs = {name: array_of(tensor, name) for name, tensor in response.outputs.items()}
    return PredictResponse(outputs, model_of(response))


def decode_tensor(data: bytes, name: str) -> Array:
    """Decodes one serialized TensorProto; `name` is for the error message."""
    return array_of(parse("TensorProto", data), name)


def model_of(response: Any) -> ModelSpec:
    """The model that a response names."""
    spec = response.model_spec
    version = spec.version.value if spec.HasField("version") else None
    return ModelSpec(spec.name, version, spec.signature_name)


def array_of(tensor: Any, name: str) -> Array:
    """The array in a parsed TensorProto; `name` is for the error message."""
    dtype = dtype_of_number(tensor.dtype)
    sizes = shape_of(tensor.tensor_shape) or ()
    shape = tuple(size for size in sizes if size is not None)
    if len(shape) < len(sizes):
        raise DecodeError(f"tensor {name!r} has an unknown or negative dimension")
    content = tensor.tensor_content
    if not content:
        values = _typed(tensor, dtype)
    elif dtype is STRING:
        raise DecodeError(f"tensor {name!r} is a string tensor with tensor_content")
    else:
        values = _numbers(content, dtype.storage, dtype)
    needed = math.prod(shape)
    if values.size < needed <= _LARGEST_FILL and not content:
        values = _filled(tensor, values, needed, dtype, name)
    if values.size != needed:
        raise DecodeError(
            f"tensor {name!r} has {values.size} values, but its shape {list(shape)} needs {needed}"
        )
    values = values.reshape(shape)
    return bfloat16_values(values) if dtype is BFLOAT16 else values


_LARGEST_FILL = 1 << 28  # the largest tensor, in values, whose missing values are filled in


def _numbers(content: bytes, storage: np.dtype[Any], dtype: DType) -> Array:
    if len(content) % storage.itemsize:
        size = storage.itemsize
        raise DecodeError(f"{len(content)} bytes of {dtype}, not a multiple of {size}")
    return np.frombuffer(content, storage).copy()


def _typed(tensor: Any, dtype: DType) -> Array:
    """The values of a tensor's typed field."""
    field = TYPED_FIELDS[dtype.typed_field]
    found = getattr(tensor, field)
    if dtype is STRING:
        return object_array(found)
    if field in ("float_val", "double_val"):
        return _numbers(b"".join(found), dtype.storage, dtype)
    if field == "half_val":
        return np.fromiter(found, np.int64).astype(np.uint16).view(dtype.storage)
    return np.fromiter(found, np.uint64 if field == "uint64_val" else np.int64).astype(
        dtype.storage
    )


def _filled(tensor: Any, values: Array, needed: int, dtype: DType, name: str) -> Array:
    """Repeats the last value up to `needed` values, as TensorFlow does; zeros if there is none."""
    if has_unknown(tensor):
        raise DecodeError(f"tensor {name!r} has values in an encoding that is not supported")
    empty = b"" if dtype is STRING else 0
    last = values[-1] if values.size else empty
    return np.concatenate((values, np.full(needed - values.size, last, dtype.storage)))
