"""The expansion rule, case by case; every dtype; what the patches and the server may not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_metadata_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@dataclass
class Legal:
    """A request that an expanding server answers, and stock TF Serving's reaction to it."""

    name: str
    signature: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    stock_answers: bool = False


LEGAL = [
    Legal(
        "all_rows_sent",
        "serving_default",
        {"user": floats(1, 2, 3), "item": floats(4, 5, 6)},
        {"score": [104, 205, 306], "item": [4, 5, 6]},
        stock_answers=True,
    ),
    Legal(
        "user_once",
        "serving_default",
        {"user": floats(1), "item": floats(4, 5, 6)},
        {"score": [104, 105, 106], "item": [4, 5, 6]},
    ),
    Legal(
        "item_once",
        "serving_default",
        {"user": floats(1, 2, 3), "item": floats(4)},
        {"score": [104, 204, 304], "item": [4, 4, 4]},
    ),
    Legal(
        "no_candidate",
        "serving_default",
        {"user": zeros(0), "item": zeros(0)},
        {"score": []},
        stock_answers=True,
    ),
    Legal(
        "inner_dimensions_are_repeated_whole",
        "inner",
        {
            "vector": floats([1, 2, 3]),
            "history": np.array([[5, 6]], np.int64),
            "item": floats(7, 8),
        },
        {"parts": [[321, 11, 7], [321, 11, 8]]},
    ),
    Legal(
        "scalars_and_fixed_first_dimensions_stay",
        "fixed",
        {
            "scale": np.float32(2),
            "weights": floats(10, 1),
            "user": floats(1),
            "item": floats(4, 5, 6),
        },
        {"score": [28, 30, 32]},
    ),
    Legal(
        "unknown_rank_passes_as_it_came",
        "any_rank",
        {"user": zeros(1, 2, 5), "item": floats(1, 2, 3)},
        {"shape": [1, 2, 5]},
        stock_answers=True,
    ),
    Legal(
        "unknown_rank_sent_a_scalar",
        "any_rank",
        {"user": np.float32(1), "item": floats(1, 2)},
        {"shape": [], "item": [1, 2]},
        stock_answers=True,
    ),
    Legal(
        "a_default_is_expanded",
        "defaults",
        {"item": floats(4, 5, 6)},
        {"score": [704, 705, 706]},
    ),
    Legal(
        "a_default_is_overridden",
        "defaults",
        {"user": floats(1), "item": floats(4, 5)},
        {"score": [104, 105]},
    ),
    Legal(
        "late",
        "late",
        {"user": floats(1), "item": floats(4, 5, 6)},
        {"score": [104, 105, 106]},
        stock_answers=True,
    ),
    Legal(
        "alone_without_its_last_dimension",
        "alone",
        {"x": floats(1, 2, 5)},
        {"y": [2.5, 3, 4.5]},
        stock_answers=True,
    ),
    Legal("alone_as_a_scalar", "alone", {"x": np.float32(2)}, {"y": 3}, stock_answers=True),
]


@pytest.mark.parametrize("case", LEGAL, ids=lambda case: case.name)
def test_legal(predict: Callable[..., Any], stock: bool, case: Legal) -> None:
    answer = predict(case.signature, case.inputs)
    if stock and not case.stock_answers:
        answer.refused(INVALID)
        return
    for name, expected in case.outputs.items():
        np.testing.assert_array_equal(answer.output(name), expected)


@dataclass
class Illegal:
    """A request that fails, with the same code on every server.

    `culprits` are words in our messages; stock TF Serving's messages have less detail.
    """

    name: str
    signature: str
    inputs: dict[str, Any]
    culprits: tuple[str, ...]


ILLEGAL = [
    Illegal(
        "every_offender_is_named",
        "inner",
        {"vector": zeros(2, 3), "history": np.zeros((3, 1), np.int64), "item": zeros(4)},
        ('"vector"', "2 rows", '"history"', "3 rows", "N = 4", '"item"'),
    ),
    Illegal(
        "late_user_sent_on_every_row",
        "late",
        {"user": floats(1, 2, 3), "item": floats(4, 5, 6)},
        ('"user"', "[3]", "[1]"),
    ),
    Illegal(
        "unknown_input",
        "serving_default",
        {"user": floats(1), "item": floats(4), "other": floats(4)},
        ("other",),
    ),
]


@pytest.mark.parametrize("case", ILLEGAL, ids=lambda case: case.name)
def test_illegal(predict: Callable[..., Any], stock: bool, case: Illegal) -> None:
    predict(case.signature, case.inputs).refused(INVALID, *(() if stock else case.culprits))


ROW = {"user": np.float32([1]), "item": np.float32([4])}


def test_the_empty_signature_name_is_the_default_one(predict: Callable[..., Any]) -> None:
    answer = predict("", ROW)
    assert answer.output("score").tolist() == [104]
    spec = answer.response.model_spec
    assert (spec.name, spec.signature_name, spec.version.value) == (
        "conformance",
        "serving_default",
        1,
    )


def test_every_output_comes_back_without_a_filter(predict: Callable[..., Any]) -> None:
    assert set(predict("serving_default", ROW).response.outputs) == {"score", "item"}


def test_the_filter_selects_outputs(predict: Callable[..., Any]) -> None:
    answer = predict("serving_default", ROW, output_filter=("item",))
    assert set(answer.response.outputs) == {"item"}


@pytest.mark.parametrize("outputs", [("score", "nothing"), ("score", "score")])
def test_a_filter_of_unknown_or_repeated_outputs_is_refused(
    predict: Callable[..., Any], outputs: tuple[str, ...]
) -> None:
    answer = predict("serving_default", ROW, output_filter=outputs)
    answer.refused(grpc.StatusCode.INVALID_ARGUMENT, outputs[1])


def test_metadata_declares_the_signatures_as_they_were_saved(stub: Any) -> None:
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "conformance"
    signatures = get_model_metadata_pb2.SignatureDefMap()
    stub.GetModelMetadata(request, timeout=120).metadata["signature_def"].Unpack(signatures)
    late = signatures.signature_def["late"].inputs
    assert [dim.size for dim in late["user"].tensor_shape.dim] == [1]
    assert [dim.size for dim in late["item"].tensor_shape.dim] == [-1]
    assert signatures.signature_def["any_rank"].inputs["user"].tensor_shape.unknown_rank


# For each dtype: its field, the values of one row, and those of three more rows; a complex number
# is two values.
COLUMNS = [
    (tf.float16, "half_val", [0x3C00], [0x4000, 0x4200, 0x8000]),
    (tf.bfloat16, "half_val", [0x3F80], [0x4000, 0x4040, 0x8000]),
    (tf.float32, "float_val", [1.5], [2.5, -3.5, 0.0]),
    (tf.float64, "double_val", [1.5], [2.5, -3.5, 1e300]),
    (tf.complex64, "scomplex_val", [1.0, 2.0], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
    (tf.complex128, "dcomplex_val", [1.0, 2.0], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
    (tf.int8, "int_val", [-1], [127, -128, 0]),
    (tf.int16, "int_val", [-1], [32767, -32768, 0]),
    (tf.int32, "int_val", [-1], [2**31 - 1, -(2**31), 0]),
    (tf.int64, "int64_val", [-1], [2**63 - 1, -(2**63), 0]),
    (tf.uint8, "int_val", [1], [255, 128, 0]),
    (tf.uint16, "int_val", [1], [65535, 32768, 0]),
    (tf.uint32, "uint32_val", [1], [2**32 - 1, 2**31, 0]),
    (tf.uint64, "uint64_val", [1], [2**64 - 1, 2**63, 0]),
    (tf.bool, "bool_val", [True], [False, True, False]),
    (tf.string, "string_val", [b"user"], [b"", b"\xff\x00 bytes", b"x" * 100]),
    (tf.qint8, "int_val", [-1], [127, -128, 0]),
    (tf.qint16, "int_val", [-1], [32767, -32768, 0]),
    (tf.qint32, "int_val", [-1], [2**31 - 1, -(2**31), 0]),
    (tf.quint8, "int_val", [1], [255, 128, 0]),
    (tf.quint16, "int_val", [1], [65535, 32768, 0]),
]


def typed(dtype: tf.DType, field: str, values: list[Any], *shape: int) -> tensor_pb2.TensorProto:
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    getattr(proto, field).extend(values)
    return proto


def as_content(proto: tensor_pb2.TensorProto) -> tensor_pb2.TensorProto:
    """The same tensor in tensor_content; for strings, all lengths precede all bytes."""
    content = tensor_pb2.TensorProto(dtype=proto.dtype, tensor_shape=proto.tensor_shape)
    if proto.string_val:
        lengths = bytes(len(value) for value in proto.string_val)  # one-byte varints
        content.tensor_content = lengths + b"".join(proto.string_val)
    else:
        content.tensor_content = tf.make_ndarray(proto).tobytes()
    return content


def interleaved(user: list[Any], item: list[Any]) -> list[Any]:
    """The values of tf.stack([user, item], axis=1) after the user is repeated for every item."""
    width = len(user)
    return [x for i in range(0, len(item), width) for x in (*user, *item[i : i + width])]


@pytest.mark.parametrize("encoding", ["typed", "content"])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column[0].name)
def test_a_row_of_every_dtype_is_expanded(
    predict: Callable[..., Any],
    stock: bool,
    column: tuple[tf.DType, str, list[Any], list[Any]],
    encoding: str,
) -> None:
    dtype, field, user, item = column
    inputs = {"user": typed(dtype, field, user, 1), "item": typed(dtype, field, item, 3)}
    if encoding == "content":
        inputs = {name: as_content(proto) for name, proto in inputs.items()}
    answer = predict(f"pair_{dtype.name}", inputs)
    if stock:
        answer.refused(grpc.StatusCode.INVALID_ARGUMENT)
        return
    expected = typed(dtype, field, interleaved(user, item), 3, 2)
    assert answer.output("pair").tolist() == tf.make_ndarray(expected).tolist()


def test_a_short_list_repeats_its_last_value(predict: Callable[..., Any]) -> None:
    inputs = {
        "user": typed(tf.float32, "float_val", [1.0], 3),
        "item": typed(tf.float32, "float_val", [4.0, 5.0], 3),
    }
    answer = predict("serving_default", inputs)
    assert answer.output("score").tolist() == [104, 105, 105]
