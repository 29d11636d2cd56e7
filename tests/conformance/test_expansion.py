"""The expansion rule, case by case; what the patches and the server may not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
THREE = tensor_shape_pb2.TensorShapeProto(dim=[{"size": 3}])


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def both(user: list[float], item: list[float]) -> dict[str, Any]:
    return {"user": floats(*user), "item": floats(*item)}


# Requests with the signature, the inputs and the outputs. Stock TF Serving answers these, too ...
UNCHANGED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "all_rows_sent": (
        "serving_default",
        both([1, 2, 3], [4, 5, 6]),
        {"score": [104, 205, 306], "item": [4, 5, 6]},
    ),
    "no_candidate": ("serving_default", both([], []), {"score": []}),
    "unknown_rank_passes_as_it_came": (
        "any_rank",
        {"user": zeros(1, 2, 5), "item": floats(1, 2, 3)},
        {"shape": [1, 2, 5]},
    ),
    "unknown_rank_sent_a_scalar": (
        "any_rank",
        {"user": np.float32(1), "item": floats(1, 2)},
        {"shape": [], "item": [1, 2]},
    ),
    "late": ("late", both([1], [4, 5, 6]), {"score": [104, 105, 106]}),
    "alone_without_its_last_dimension": ("alone", {"x": floats(1, 2, 5)}, {"y": [2.5, 3, 4.5]}),
    "alone_as_a_scalar": ("alone", {"x": np.float32(2)}, {"y": 3}),
    "a_short_list_repeats_its_last_value": (
        "serving_default",
        {
            "user": tensor_pb2.TensorProto(dtype=1, tensor_shape=THREE, float_val=[1]),
            "item": tensor_pb2.TensorProto(dtype=1, tensor_shape=THREE, float_val=[4, 5]),
        },
        {"score": [104, 105, 105]},
    ),
}
# ... but not these.
EXPANDED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "user_once": (
        "serving_default",
        both([1], [4, 5, 6]),
        {"score": [104, 105, 106], "item": [4, 5, 6]},
    ),
    "item_once": (
        "serving_default",
        both([1, 2, 3], [4]),
        {"score": [104, 204, 304], "item": [4, 4, 4]},
    ),
    "inner_dimensions_are_repeated_whole": (
        "inner",
        {"vector": floats([1, 2, 3]), "history": np.array([[5, 6]]), "item": floats(7, 8)},
        {"parts": [[321, 11, 7], [321, 11, 8]]},
    ),
    "scalars_and_fixed_first_dimensions_stay": (
        "fixed",
        {"scale": np.float32(2), "weights": floats(10, 1)} | both([1], [4, 5, 6]),
        {"score": [28, 30, 32]},
    ),
    "a_default_is_expanded": ("defaults", {"item": floats(4, 5, 6)}, {"score": [704, 705, 706]}),
    "a_default_is_overridden": ("defaults", both([1], [4, 5]), {"score": [104, 105]}),
}


@pytest.mark.parametrize("case", [*UNCHANGED, *EXPANDED])
def test_legal(predict: Callable[..., Any], stock: bool, case: str) -> None:
    signature, inputs, outputs = UNCHANGED.get(case) or EXPANDED[case]
    answer = predict(signature, inputs)
    if stock and case in EXPANDED:
        answer.refused(INVALID)
        return
    for name, expected in outputs.items():
        np.testing.assert_array_equal(answer.output(name), expected)


# Requests that every server refuses, and words in our messages; stock TF Serving's say less.
ILLEGAL: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "every_offender_is_named": (
        "inner",
        {"vector": zeros(2, 3), "history": np.zeros((3, 1), np.int64), "item": zeros(4)},
        ('"vector"', "2 rows", '"history"', "3 rows", "N = 4", '"item"'),
    ),
    "late_user_sent_on_every_row": ("late", both([1, 2, 3], [4, 5, 6]), ('"user"', "[3]", "[1]")),
    "unknown_input": ("serving_default", both([1], [4]) | {"other": floats(4)}, ("other",)),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal(predict: Callable[..., Any], stock: bool, case: str) -> None:
    signature, inputs, culprits = ILLEGAL[case]
    predict(signature, inputs).refused(INVALID, *(() if stock else culprits))
