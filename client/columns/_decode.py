"""Decodes PredictResponse bytes to arrays, from tensor_content or typed fields."""

import math
from dataclasses import dataclass

import numpy as np
from colcast.client._errors import DecodeError
from colcast.client.columns._dtypes import (
    BFLOAT16,
    HALF_FIELD,
    STRING,
    Array,
    DType,
    bfloat16_values,
    dtype_of_number,
)
from colcast.client.wire import (
    BYTES,
    VARINT,
    fields,
    integer,
    map_entry,
    message,
    read_varints,
    signed,
    text,
)


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
        DecodeError: the message is truncated, or a tensor's values do not fit its shape.
    """
    outputs: dict[str, Array] = {}
    model = ModelSpec()
    for number, _, value in fields(data):
        if number == 1:
            name, tensor = map_entry(message(number, value))
            outputs[name] = decode_tensor(tensor, name)
        elif number == 2:
            model = decode_model_spec(message(number, value))
    return PredictResponse(outputs, model)


def decode_model_spec(data: bytes) -> ModelSpec:
    name = signature = ""
    version = None
    for number, _, value in fields(data):
        if number == 1:
            name = text(number, value)
        elif number == 2:
            version = 0
            for inner, _, wrapped in fields(message(number, value)):
                version = signed(integer(inner, wrapped)) if inner == 1 else version
        elif number == 3:
            signature = text(number, value)
    return ModelSpec(name, version, signature)


def decode_tensor(data: bytes, name: str) -> Array:
    """Decodes one TensorProto; `name` is for the error message."""
    dtype: DType | None = None
    shape: tuple[int, ...] = ()
    content = b""
    typed: dict[int, list[tuple[int, int | bytes]]] = {}
    for number, wire_type, value in fields(data):
        if number == 1:
            dtype = dtype_of_number(integer(number, value))
        elif number == 2:
            shape = tuple(decode_dimensions(message(number, value)) or ())
            if min(shape, default=0) < 0:
                raise DecodeError(f"tensor {name!r} has a dimension of {min(shape)}")
        elif number == 4:
            content = message(number, value)
        else:
            typed.setdefault(number, []).append((wire_type, value))
    if dtype is None:
        raise DecodeError(f"tensor {name!r} has no dtype")
    if content:
        values = _from_content(content, dtype, name)
    else:
        values = _from_typed(typed.get(dtype.typed_field, []), dtype)
    values = _fill(values, shape, dtype, name, may_repeat=not content)
    return bfloat16_values(values) if dtype is BFLOAT16 else values


def decode_dimensions(data: bytes) -> list[int] | None:
    """The sizes in a TensorShapeProto, -1 for an unknown one; None for an unknown rank."""
    sizes = []
    for number, _, value in fields(data):
        if number == 3 and value:
            return None
        if number == 2:
            size = 0
            for inner, _, content in fields(message(number, value)):
                size = signed(integer(inner, content)) if inner == 1 else size
            sizes.append(size)
    return sizes


def _from_content(content: bytes, dtype: DType, name: str) -> Array:
    if dtype is STRING:
        raise DecodeError(f"tensor {name!r} is a string tensor with tensor_content")
    if len(content) % dtype.storage.itemsize:
        raise DecodeError(
            f"tensor {name!r} has {len(content)} bytes of {dtype}, not a multiple of "
            f"{dtype.storage.itemsize}"
        )
    return np.frombuffer(content, dtype.storage).copy()


def _from_typed(found: list[tuple[int, int | bytes]], dtype: DType) -> Array:
    """The values of all occurrences of a typed field, each packed or a single value."""
    if dtype is STRING:
        strings = np.empty(len(found), object)
        strings[:] = [message(dtype.typed_field, value) for _, value in found]
        return strings
    pieces: list[Array] = [_piece(wire_type, value, dtype) for wire_type, value in found]
    if not pieces:
        return np.empty(0, dtype.storage)
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


def _piece(wire_type: int, value: int | bytes, dtype: DType) -> Array:
    """One occurrence of a typed field: a packed run, or a single value."""
    if dtype.kind in "fc" and dtype.typed_field != HALF_FIELD:
        content = message(dtype.typed_field, value)
        part = np.dtype("<f8" if dtype.name in ("float64", "complex128") else "<f4")
        if len(content) % part.itemsize:
            raise DecodeError(f"{len(content)} bytes are not a whole number of {dtype}")
        return np.frombuffer(content, part).copy()
    if wire_type == VARINT:
        raw = np.array([value], np.uint64)
    elif wire_type == BYTES:
        raw = read_varints(message(dtype.typed_field, value))
    else:
        raise DecodeError(f"wire type {wire_type} cannot hold {dtype}")
    if dtype.typed_field == HALF_FIELD:
        return raw.astype(np.uint16).view(dtype.storage)
    return raw.astype(np.int64).astype(dtype.storage)


_LARGEST_FILL = 1 << 28  # the largest tensor, in values, whose missing values are filled in


def _fill(
    values: Array, shape: tuple[int, ...], dtype: DType, name: str, *, may_repeat: bool
) -> Array:
    """Reshapes the values; if there are too few, the last one is repeated."""
    if dtype.kind == "c" and values.dtype.kind == "f":
        values = values.view(dtype.storage)
    needed = math.prod(shape)
    if values.size < needed <= _LARGEST_FILL and may_repeat:
        empty = b"" if dtype is STRING else 0
        last = values[-1] if values.size else empty
        values = np.concatenate((values, np.full(needed - values.size, last, dtype.storage)))
    if values.size != needed:
        raise DecodeError(
            f"tensor {name!r} has {values.size} values, but its shape {list(shape)} needs {needed}"
        )
    return values.reshape(shape)
