"""Users' mistakes and the messages for them: the feature, the row, the given and expected value."""

import pickle
import re
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.client import (
    DecodeError,
    InputError,
    ModelSchema,
    Policies,
    SchemaError,
    ServerError,
    encode_predict_request,
)
from colcast.client._errors import UnknownDtypeError
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import examples_of_any
from colcast.client.request._request import build_request

from .conftest import COLUMNS, ITEMS, USER, request_options


def changed(features: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The features after changes; the value ... drops a feature."""
    return {name: value for name, value in (features | changes).items() if value is not ...}


def items(row: int, **changes: Any) -> list[dict[str, Any]]:
    return [changed(item, **changes) if i == row else item for i, item in enumerate(ITEMS)]


NO_DEFAULT = "; the model has no default for it"
INT64 = "is out of the range of int64 [-9223372036854775808, 9223372036854775807]"
LIST = ": expected a list or an array, one entry per row, got"

# A feature of the user, of an item's row ("movie 1") or a whole column ("movie *"); its value; what
# the message says after the feature and the row.
VALUES: list[tuple[str, Any, str]] = [
    # Missing.
    ("movie 1", ..., f"expected int64, got nothing{NO_DEFAULT}"),
    ("movie *1", pd.Series([7.0, None, 11.0]), "expected int64, got nan (float); the"),
    ("movie 2", None, f"expected int64, got None (NoneType){NO_DEFAULT}"),
    ("vector 0", ..., f"expected float32, got nothing{NO_DEFAULT}"),
    ("vector 1", float("nan"), f"expected float32, got nan (float){NO_DEFAULT}"),
    ("history", [1, None], f"expected int64, got None (NoneType){NO_DEFAULT}"),
    # Of a wrong type.
    ("age", 31.5, "expected int64, got 31.5 (float)"),
    ("age", 1j, "expected int64, got 1j (complex)"),
    ("age", {"years": 31}, "expected int64, got {'years': 31} (dict)"),
    ("city", True, "expected string, got True (bool)"),
    ("city", "\ud800", "expected string, got text with surrogates not allowed"),
    ("movie 2", b"11", "expected int64, got b'11' (bytes)"),
    ("movie 0", "x" * 100, f"expected int64, got '{'x' * 56}... (str)"),
    ("year 1", "1984", "expected float32, got '1984' (str)"),
    ("vector 0", [1.0, "2", 3.0], "expected float32, got '2' (str)"),
    ("genres 2", ["War", 5], "expected string, got 5 (int)"),
    ("movie *0", np.array(["7", "9", "11"]), "expected int64, got '7' (str)"),
    ("movie *1", np.array([7.0, 9.5, 11.0]), "expected int64, got 9.5 (float)"),
    ("movie *1", np.array([7, "nine", 11], object), "expected int64, got 'nine' (str)"),
    (
        "movie *0",
        np.array(["2024-01-01"] * 3, "M8[D]"),
        "expected int64, got dates (datetime64[D])",
    ),
    ("movie *0", pd.to_datetime(["2001-01-01"] * 3), "expected int64, got dates (datetime64["),
    ("movie *0", pd.to_datetime(["2001-01-01"] * 3, utc=True), "expected int64, got Timestamp"),
    ("movie *0", pd.to_timedelta([1, 2, 3]), "expected int64, got Timedelta"),
    ("movie *0", pd.period_range("2001", periods=3), "expected int64, got Period"),
    ("movie *0", pd.Categorical(["a", "b", "a"]), "expected int64, got 'a' (str)"),
    ("movie *0", pa.array([1, 2, 3], pa.date32()), "expected int64, got dates (datetime64[D])"),
    ("vector 1", np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "expected float32, got masked (Mas"),
    ("genres 2", np.ma.array(["War", "x"], mask=[0, 1]), "expected string, got masked (Masked"),
    ("year 0", np.ma.masked, "expected float32, got masked (MaskedConstant)"),
    # Out of range.
    ("age", 2**63, f"9223372036854775808 {INT64}"),
    ("movie *2", np.array([1, 2, 2**63], np.uint64), f"9223372036854775808 {INT64}"),
    ("movie *1", np.array([1.0, 1e19, 2.0]), f"1e+19 {INT64}"),
    ("movie *1", np.array([1.0, 2.0**63, 2.0]), f"9.223372036854776e+18 {INT64}"),
    ("year 1", 1e39, "1e+39 (float) is too large for float32"),
    ("year *1", [1.0, 1e39, 2.0], "1e+39 (float) is too large for float32"),
    ("year *2", np.array([1.0, 2.0, 1e39]), "1e+39 (float) is too large for float32"),
    ("year 0", 10**400, f"1{'0' * 56}... (int) is too large for float32"),
    # Of a wrong shape.
    ("age", [31], "expected int64 of shape [], got shape [1]"),
    ("vector 1", [1.0, 2.0], "expected float32 of shape [3], got shape [2]"),
    ("vector 1", 4.0, "expected float32 of shape [3], got shape []"),
    ("vector 2", [1, [2], 3], "expected float32 of shape [3], got lists of unequal length"),
    ("vector *", np.zeros((3, 2)), ": expected shape [rows, 3], got [3, 2]"),
    ("vector *", np.array([1.0, np.nan, 2.0]), ": expected shape [rows, 3], got [3]"),
    ("movie *", np.zeros((3, 1), int), ": expected shape [rows], got [3, 1]"),
    ("movie *", 7, f"{LIST} int"),
    ("movie *", "789", f"{LIST} str"),
    ("movie *", np.int64(7), ": expected one entry per row, got a scalar"),
    (
        "movie *",
        np.ma.array([7, 9, 11], mask=[0, 1, 0]),
        ": is a masked array; pass a list with None, or filled()",
    ),
    ("genres 1", "Drama", "expected a list of string, got 'Drama' (str)"),
    ("genres 2", np.array([["War"]]), "expected string of shape [any], got shape [1, 1]"),
    ("genres *", np.array(["a", "b", "c"]), ": expected shape [rows, values], got [3]"),
]


@pytest.mark.parametrize("nan", ["error", "send"])
@pytest.mark.parametrize(("where", "value", "said"), VALUES, ids=range(len(VALUES)))
def test_a_wrong_value_is_named_with_its_place(
    schema: ModelSchema, where: str, value: Any, said: str, nan: Any
):
    name, _, place = where.partition(" ")
    user, rows = USER, ITEMS
    if place.startswith("*"):
        rows, row = {**COLUMNS, name: value}, place[1:]
    elif place:
        rows, row = items(int(place), **{name: value}), place
    else:
        user, row = {**USER, name: value}, ""
    options = request_options("movies", policies=Policies(nan=nan))
    with pytest.raises(InputError) as wrong:
        build_request(schema, Rows(rows, user), options)
    start = f"{'' if place else 'user '}feature '{name}'{f', row {row}' if row else ''}"
    assert str(wrong.value).startswith(start + (said if said[0] == ":" else f": {said}"))
    assert wrong.value.feature == name
    assert wrong.value.row == (int(row) if row else None)


NO_LIST = (
    "items must be a list of dicts, a dict of lists or arrays, a pandas or Polars DataFrame or a "
    "pyarrow Table, got"
)
AGE = "feature 'age': missing"
EMPTY = pa.array([], pa.list_(pa.int64()))
NO_ROWS = "items has no rows: there is nothing to rank"
MISTAKES: list[tuple[Any, Any, str]] = [
    (changed(USER, age=..., aeg=31), ITEMS,
     f"{AGE}, and the model has no default for it; given but unused: 'aeg'"),
    ({}, [{}], f"{AGE} (also: 'city', 'movie', 'vector'), and the model has no default for it"),
    (USER | {7: 1}, ITEMS, "feature names must be text, got 7 (int)"),
    (USER, [*ITEMS, {None: 1}], "feature names must be text, got None (NoneType)"),
    (USER, pd.DataFrame([[7]], columns=[0]), "feature names must be text, got 0 (int)"),
    (USER | {"movie": 7}, ITEMS, "feature 'movie': given in user and in items"),
    (changed(USER, **{"history/length": 2}, history=...), ITEMS,
     "feature 'history/length': given without the values that it counts"),
    (USER, COLUMNS | {"genres": np.array([["a", "b"]] * 3), "genres/length": [1, 3, 2]},
     "feature 'genres/length', row 1: expected a length from 0 to 2, the padded width, got 3"),
    (USER, COLUMNS | {"genres": np.empty((3, 0), "S1"), "genres/length": [0, 1, 0]},
     "feature 'genres/length', row 1: expected a length from 0 to 0, the padded width, got 1"),
    (USER, [], NO_ROWS),
    (USER, {}, NO_ROWS),
    (USER, pa.table({"genres": EMPTY}), NO_ROWS),
    (USER, {"genres": EMPTY}, NO_ROWS),
    (USER, [*ITEMS, 7], "row 3: expected a dict of features, got int"),
    (USER, COLUMNS | {"year": [1.0, 2.0]}, "feature 'year': 2 rows, but 'movie' has 3"),
    (USER, COLUMNS | {"movie": []}, "feature 'year': 3 rows, but 'movie' has 0"),
    (USER, "movie", f"{NO_LIST} str"),
    (USER, iter(ITEMS), f"{NO_LIST} list_iterator"),
    ([USER], ITEMS, "user must be a dict of features or a pandas Series, got list"),
    (USER, pd.DataFrame([[7, 8], [9, 10]], columns=["movie", "movie"]),
     "feature 'movie': the frame has two columns of this name"),
]  # fmt: skip


@pytest.mark.parametrize(("user", "items", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_the_message(schema: ModelSchema, user: Any, items: Any, message: str):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        build_request(schema, Rows(items, user), request_options("movies"))


EXAMPLE, TWO = tf.train.Example(), tf.train.Example()
EXAMPLE.features.feature["age"].int64_list.value.append(31)
TWO.features.feature["age"].int64_list.value.extend([31, 32])
NOT_AN_EXAMPLE = "not a serialized tf.Example: not a valid Example"


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "items has no rows: there is nothing to rank"),
        (b"\x0a\x00", "expected a list of tf.Examples or their bytes, got bytes"),
        (EXAMPLE, "expected a list of tf.Examples, got one Example"),
        ([b"\x0a\x00", 7], "row 1: expected a proto or its bytes, got int"),
        ([b"", b"\x0a\x05\x0a"], f"row 1: {NOT_AN_EXAMPLE}"),
        ([EXAMPLE], "feature 'city': missing (also: 'movie', 'vector'), and the model"),
        ([TWO], "feature 'age', row 0: expected 1 values, the example has 2"),
    ],
)
def test_wrong_examples(schema: ModelSchema, examples: Any, message: str):
    with pytest.raises(InputError, match=re.escape(message)):
        build_request(schema, examples_of_any(examples), request_options("movies"))


@pytest.mark.parametrize(
    ("policies", "items", "message"),
    [
        ({"none": "error"}, items(1, year=None),
         "feature 'year', row 1: expected float32, got None (NoneType); none='error'"),
        ({"none": "error"}, [{"year": 1.0, **item} for item in items(1, genres=None)],
         "feature 'genres', row 1: expected string, got None (NoneType); none='error'"),
        ({"nan": "error"}, items(1, year=float("nan")),
         "feature 'year', row 1: expected a finite float32, got nan (float): most models score "
         "it wrongly; for one that accepts it, such as a decision forest: Policies(nan='send')"),
        ({"unused": "error"}, items(1, poster="x"),
         "feature 'poster': the signature has no such feature"),
    ],
)  # fmt: skip
def test_stricter_policies(schema: ModelSchema, policies: dict[str, Any], items: Any, message: str):
    options = request_options("m", policies=Policies(**policies))
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        build_request(schema, Rows(items, USER), options)


def test_a_policy_that_does_not_exist():
    with pytest.raises(InputError, match="nan must be one of send, default, error, got 'zero'"):
        Policies(nan="zero")  # type: ignore[arg-type]


def test_without_a_signature_a_masked_array_is_refused():
    with pytest.raises(InputError, match="feature 'x': is a masked array"):
        encode_predict_request("m", "s", {"x": np.ma.array([1, 2], mask=[0, 1])})


ERRORS = [
    ServerError("UNAVAILABLE", "gone", address="a:1", attempts=3),
    InputError("expected int64", feature="age", row=2, of_user=True),
    SchemaError("no signature"),
    DecodeError("cut off"),
    UnknownDtypeError("a resource"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_can_be_copied_and_pickled(error: Exception, again: Any):
    found = again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
