"""Encodes columns as a PredictRequest, directly from the arrays' memory.

No protobuf object is built: a tensor is a few header bytes followed by its array's own buffer
(tensor_content), and everything is concatenated once. docs/wire.md explains the result byte by
byte.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from colcast.client._errors import InputError
from colcast.client.columns._dtypes import (
    STRING,
    Array,
    DType,
    bfloat16_bits,
    dtype_of_array,
)
from colcast.client.columns._values import object_array, refuse_masked, shown
from colcast.client.wire import field, integer_field, varint

Parts = list[bytes]


class Tensor(NamedTuple):
    """One input, ready to be encoded.

    Attributes:
        dtype: the dtype to declare; a value of `DTYPES`, whose keys are TensorFlow's names.
        values: [rows, ...] in `dtype.storage`; strings as an object array of bytes.
        shape: the shape to declare if it is not `values.shape`: `values` then holds exactly one
            value, which TensorFlow repeats to fill the shape.
    """

    dtype: DType
    values: Array
    shape: tuple[int, ...] | None = None


def encode_predict_request(
    model: str,
    signature: str,
    columns: Mapping[str, Any],
    *,
    version: int | None = None,
    version_label: str | None = None,
    output_filter: Sequence[str] = (),
) -> bytes:
    """Encodes one `tensorflow.serving.PredictRequest`.

    Args:
        model: the served model's name.
        signature: the signature to run.
        columns: input name -> array [rows, ...] (anything `np.asarray` accepts), sent with the
            array's dtype; or a `Tensor`, which states the dtype.
        version: the model version to run; None lets the server choose (the newest).
        version_label: the label of the version to run, instead of its number.
        output_filter: the outputs to return; empty for all.

    Returns:
        The message's bytes.

    Raises:
        InputError: TensorFlow has no dtype for an array, both `version` and `version_label` are
            given, or a string column holds something other than text or bytes.
    """
    if version is not None and version_label is not None:
        raise InputError("give version or version_label, not both")
    spec = model_spec(model, signature, version, version_label)
    parts: Parts = [spec, encode_inputs(columns)]
    parts.extend(field(3, output.encode()) for output in output_filter)
    return b"".join(parts)


def encode_inputs(columns: Mapping[str, Any]) -> bytes:
    """Encodes the fields of a PredictRequest that hold these columns.

    They may be appended or prepended to an encoded request, because a message is a sequence of
    fields.
    """
    parts: Parts = []
    for name, column in columns.items():
        tensor = column if isinstance(column, Tensor) else _tensor_of(name, column)
        _append_input(parts, name, tensor)
    return b"".join(parts)


@lru_cache(maxsize=256)
def model_spec(model: str, signature: str | None, version: int | None, label: str | None) -> bytes:
    """The field of a request that names its model and signature."""
    spec = field(1, model.encode())
    if version is not None:
        spec += field(2, integer_field(1, version))
    if signature is not None:
        spec += field(3, signature.encode())
    if label is not None:
        spec += field(4, label.encode())
    return field(1, spec)


def _append_input(parts: Parts, name: str, tensor: Tensor) -> None:
    """Appends one entry of the map `inputs`: its header and its values."""
    dtype, values, shape = tensor
    if shape is not None:
        body = _one_typed_value(tensor)
        lead = _lead(name, dtype.number, shape, len(body), content=False)
    elif dtype is STRING:
        try:
            body = string_values(values)
        except TypeError:  # not all values are bytes
            body = string_values(_as_bytes(name, values))
        lead = _lead(name, dtype.number, values.shape, len(body), content=False)
    else:
        if values.dtype != dtype.storage:
            values = values.astype(dtype.storage)
        body = values.tobytes()
        lead = _content_lead(name, dtype.number, values.shape, len(body))
    parts += (lead, body)


@lru_cache(maxsize=1 << 15)
def _content_lead(name: str, dtype: int, shape: tuple[int, ...], size: int) -> bytes:
    """The start of a numeric column, cached because services repeat names and shapes."""
    return _lead(name, dtype, shape, size, content=size > 0)


def _lead(name: str, dtype: int, shape: tuple[int, ...], size: int, *, content: bool) -> bytes:
    """The start of a map entry: sizes, key, dtype, shape, and the tag of tensor_content.

    Protobuf writes lengths first, so the result depends on the number of bytes that follow.
    """
    tensor = _header(dtype, shape)
    if content:
        tensor += b"\x22" + varint(size)
    key = _key(name) + varint(len(tensor) + size)
    return b"\x12" + varint(len(key) + len(tensor) + size) + key + tensor


@lru_cache(maxsize=1 << 14)
def _key(name: str) -> bytes:
    return field(1, name.encode()) + b"\x12"


@lru_cache(maxsize=1 << 12)
def _header(dtype: int, shape: tuple[int, ...]) -> bytes:
    dims = b"".join(field(2, integer_field(1, size)) for size in shape)
    return integer_field(1, dtype) + field(2, dims)


_SHORT_LEADS = [b"\x42" + varint(size) for size in range(256)]


def string_values(values: Array) -> bytes:
    """Encodes a bytes array [...] as string_val fields (number 8), in row-major order."""
    flat = values.ravel().tolist()
    parts: list[bytes] = [b""] * (2 * len(flat))
    parts[1::2] = flat
    try:
        parts[::2] = map(_SHORT_LEADS.__getitem__, map(len, flat))
    except IndexError:
        parts[::2] = [b"\x42" + varint(len(value)) for value in flat]
    return b"".join(parts)


def _one_typed_value(tensor: Tensor) -> bytes:
    dtype = tensor.dtype
    if dtype is STRING:
        return string_values(tensor.values)
    value = np.ascontiguousarray(tensor.values, dtype.storage).reshape(1)
    if dtype.kind == "f" and value.itemsize > 2:
        return field(dtype.typed_field, value.tobytes())
    bits = value.view(np.uint16) if dtype.kind == "f" else value
    return field(dtype.typed_field, varint(int(bits[0])))


def _tensor_of(name: str, column: Any) -> Tensor:
    """An array as a tensor of its own dtype."""
    refuse_masked(name, column)
    values = np.asarray(column)
    try:
        dtype = dtype_of_array(values)
    except InputError as error:
        raise InputError(str(error), feature=name) from None
    if dtype.name == "bfloat16":
        return Tensor(dtype, bfloat16_bits(values.astype(np.float32)))
    return Tensor(dtype, values)


def _as_bytes(name: str, values: Array) -> Array:
    """The same strings with text encoded as UTF-8; refuses anything else."""
    flat = values.ravel().tolist()
    for value in flat:
        if not isinstance(value, str | bytes):
            raise InputError(f"expected str or bytes, got {shown(value)}", feature=name)
    encoded = [value.encode() if isinstance(value, str) else value for value in flat]
    return object_array(encoded).reshape(values.shape)
