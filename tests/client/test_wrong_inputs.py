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

from .conftest import ITEMS, USER, request_options, signature, spec

COLUMNS = {
    "movie": [7, 9, 11],
    "year": [2001.0, 1984.0, 1990.0],
    "genres": [["Drama"], [], ["War", "Noir"]],
    "vector": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
}


def items(row: int, **changes: Any) -> list[dict[str, Any]]:
    """The items after changes to one row; the value ... drops a feature."""
    changed = [dict(item) for item in ITEMS]
    changed[row].update(changes)
    changed[row] = {key: value for key, value in changed[row].items() if value is not ...}
    return changed


def user(**changes: Any) -> dict[str, Any]:
    """The user after changes; the value ... drops a feature."""
    return {key: value for key, value in {**USER, **changes}.items() if value is not ...}


def columns(**changes: Any) -> dict[str, Any]:
    return {**COLUMNS, **changes}


MISTAKES: list[tuple[Any, Any, str]] = [
    # Wrong names.
    (user(age=...), ITEMS, "feature 'age': missing, and the model has no default for it"),
    (
        user(age=..., aeg=31),
        ITEMS,
        "feature 'age': missing, and the model has no default for it; given but unused: 'aeg'",
    ),
    (
        user(age=..., city=...),
        ITEMS,
        "feature 'age': missing (also: 'city'), and the model has no default for it",
    ),
    (
        {},
        [{}],
        "feature 'age': missing (also: 'city', 'movie', 'vector'), and the model has no default "
        "for it",
    ),
    (user() | {7: 1}, ITEMS, "feature names must be text, got 7 (int)"),
    (USER, [*ITEMS, {None: 1}], "feature names must be text, got None (NoneType)"),
    (user(movie=7), ITEMS, "feature 'movie': given in user and in items"),
    (
        user(**{"history/length": 2}, history=...),
        ITEMS,
        "feature 'history/length': given without the values that it counts",
    ),
    # Wrong rows.
    (
        USER,
        items(1, movie=...),
        "feature 'movie', row 1: expected int64, got nothing; the model has no default for it",
    ),
    (
        USER,
        items(2, movie=None),
        "feature 'movie', row 2: expected int64, got None (NoneType); "
        "the model has no default for it",
    ),
    (USER, [], "items has no rows: there is nothing to rank"),
    (USER, {}, "items has no rows: there is nothing to rank"),
    (USER, columns(movie=[]), "feature 'year': 3 rows, but 'movie' has 0"),
    (USER, [*ITEMS, 7], "row 3: expected a dict of features, got int"),
    (USER, columns(year=[1.0, 2.0]), "feature 'year': 2 rows, but 'movie' has 3"),
    (
        USER,
        "movie",
        "items must be a list of dicts, a dict of lists or arrays, a pandas or Polars DataFrame "
        "or a pyarrow Table, got str",
    ),
    (
        USER,
        iter(ITEMS),
        "items must be a list of dicts, a dict of lists or arrays, a pandas or Polars DataFrame "
        "or a pyarrow Table, got list_iterator",
    ),
    ([USER], ITEMS, "user must be a dict of features or a pandas Series, got list"),
    (
        USER,
        columns(movie=7),
        "feature 'movie': expected a list or an array, one entry per row, got int",
    ),
    (
        USER,
        columns(movie="789"),
        "feature 'movie': expected a list or an array, one entry per row, got str",
    ),
    (
        USER,
        columns(movie=np.int64(7)),
        "feature 'movie': expected one entry per row, got a scalar",
    ),
    (
        USER,
        columns(movie=np.ma.array([7, 9, 11], mask=[0, 1, 0])),
        "feature 'movie': is a masked array; pass a list with None, or filled()",
    ),
    (
        USER,
        items(1, vector=np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])),
        "feature 'vector', row 1: expected float32, got masked (MaskedConstant)",
    ),
    (
        USER,
        items(2, genres=np.ma.array(["War", "x"], mask=[0, 1])),
        "feature 'genres', row 2: expected string, got masked (MaskedConstant)",
    ),
    (
        USER,
        items(0, year=np.ma.masked),
        "feature 'year', row 0: expected float32, got masked (MaskedConstant)",
    ),
    # Single values of a wrong type.
    (user(age="31"), ITEMS, "user feature 'age': expected int64, got '31' (str)"),
    (user(age=31.5), ITEMS, "user feature 'age': expected int64, got 31.5 (float)"),
    (user(age=1j), ITEMS, "user feature 'age': expected int64, got 1j (complex)"),
    (
        user(age={"years": 31}),
        ITEMS,
        "user feature 'age': expected int64, got {'years': 31} (dict)",
    ),
    (user(city=5), ITEMS, "user feature 'city': expected string, got 5 (int)"),
    (user(city=True), ITEMS, "user feature 'city': expected string, got True (bool)"),
    (
        user(city="\ud800"),
        ITEMS,
        "user feature 'city': expected string, got text with surrogates not allowed",
    ),
    (USER, items(1, movie="nine"), "feature 'movie', row 1: expected int64, got 'nine' (str)"),
    (USER, items(2, movie=b"11"), "feature 'movie', row 2: expected int64, got b'11' (bytes)"),
    (USER, items(1, year="1984"), "feature 'year', row 1: expected float32, got '1984' (str)"),
    (
        USER,
        items(0, movie="x" * 100),
        f"feature 'movie', row 0: expected int64, got '{'x' * 56}... (str)",
    ),
    (
        USER,
        columns(movie=np.array(["7", "9", "11"])),
        "feature 'movie', row 0: expected int64, got '7' (str)",
    ),
    (
        USER,
        columns(movie=np.array(["2024-01-01"] * 3, "M8[D]")),
        "feature 'movie', row 0: expected int64, got dates (datetime64[D])",
    ),
    (
        USER,
        columns(movie=np.array([7.0, 9.5, 11.0])),
        "feature 'movie', row 1: expected int64, got 9.5 (float)",
    ),
    (
        USER,
        columns(movie=np.array([7, "nine", 11], object)),
        "feature 'movie', row 1: expected int64, got 'nine' (str)",
    ),
    # Values out of range.
    (
        user(age=2**63),
        ITEMS,
        "user feature 'age': 9223372036854775808 is out of the range of int64 "
        "[-9223372036854775808, 9223372036854775807]",
    ),
    (
        USER,
        columns(movie=np.array([1, 2, 2**63], np.uint64)),
        "feature 'movie', row 2: 9223372036854775808 is out of the range of int64 "
        "[-9223372036854775808, 9223372036854775807]",
    ),
    (
        USER,
        columns(movie=np.array([1.0, 1e19, 2.0])),
        "feature 'movie', row 1: 1e+19 is out of the range of int64 "
        "[-9223372036854775808, 9223372036854775807]",
    ),
    (USER, items(1, year=1e39), "feature 'year', row 1: 1e+39 (float) is too large for float32"),
    (
        USER,
        columns(year=np.array([1.0, 2.0, 1e39])),
        "feature 'year', row 2: 1e+39 (float) is too large for float32",
    ),
    (
        USER,
        items(0, year=10**400),
        f"feature 'year', row 0: 1{'0' * 56}... (int) is too large for float32",
    ),
    # Wrong shapes.
    (
        USER,
        items(1, vector=[1.0, 2.0]),
        "feature 'vector', row 1: expected float32 of shape [3], got shape [2]",
    ),
    (
        USER,
        items(1, vector=4.0),
        "feature 'vector', row 1: expected float32 of shape [3], got shape []",
    ),
    (
        USER,
        items(2, vector=[1.0, [2.0], 3.0]),
        "feature 'vector', row 2: expected float32 of shape [3], got lists of unequal length",
    ),
    (
        USER,
        items(0, vector=[1.0, "2", 3.0]),
        "feature 'vector', row 0: expected float32, got '2' (str)",
    ),
    (
        USER,
        items(0, vector=...),
        "feature 'vector', row 0: expected float32, got nothing; the model has no default for it",
    ),
    (
        USER,
        columns(vector=np.zeros((3, 2))),
        "feature 'vector': expected shape [rows, 3], got [3, 2]",
    ),
    (
        USER,
        columns(movie=np.zeros((3, 1), int)),
        "feature 'movie': expected shape [rows], got [3, 1]",
    ),
    (
        USER,
        items(1, vector=float("nan")),
        "feature 'vector', row 1: expected float32, got nan (float); "
        "the model has no default for it",
    ),
    (
        USER,
        columns(vector=np.array([1.0, np.nan, 2.0])),
        "feature 'vector': expected shape [rows, 3], got [3]",
    ),
    (user(age=[31]), ITEMS, "user feature 'age': expected int64 of shape [], got shape [1]"),
    # Wrong lists.
    (
        USER,
        items(1, genres="Drama"),
        "feature 'genres', row 1: expected a list of string, got 'Drama' (str)",
    ),
    (user(history=3), ITEMS, "user feature 'history': expected a list of int64, got 3 (int)"),
    (user(history=[1, "2"]), ITEMS, "user feature 'history': expected int64, got '2' (str)"),
    (
        user(history=[1, None]),
        ITEMS,
        "user feature 'history': expected int64, got None (NoneType); "
        "the model has no default for it",
    ),
    (
        USER,
        items(2, genres=["War", 5]),
        "feature 'genres', row 2: expected string, got 5 (int)",
    ),
    (
        USER,
        items(2, genres=np.array([["War"]])),
        "feature 'genres', row 2: expected string of shape [any], got shape [1, 1]",
    ),
    (
        USER,
        columns(**{"genres": np.array([["a", "b"]] * 3), "genres/length": [1, 3, 2]}),
        "feature 'genres/length', row 1: expected a length from 0 to 2, the padded width, got 3",
    ),
    (
        USER,
        columns(genres=np.array(["a", "b", "c"])),
        "feature 'genres': expected shape [rows, values], got [3]",
    ),
    # Wrong frames.
    (
        USER,
        columns(movie=pa.array([1, 2, 3], pa.date32())),
        "feature 'movie', row 0: expected int64, got dates (datetime64[D])",
    ),
    (
        USER,
        pa.table({"genres": pa.array([], pa.list_(pa.int64()))}),
        "items has no rows: there is nothing to rank",
    ),
    (
        USER,
        {"genres": pa.array([], pa.list_(pa.int64()))},
        "items has no rows: there is nothing to rank",
    ),
    (
        USER,
        pd.DataFrame([[7, 8], [9, 10]], columns=["movie", "movie"]),
        "feature 'movie': the frame has two columns of this name",
    ),
    (USER, pd.DataFrame([[7]], columns=[0]), "feature names must be text, got 0 (int)"),
]


@pytest.mark.parametrize(("user", "items", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_the_message(schema: ModelSchema, user: Any, items: Any, message: str) -> None:
    if isinstance(items, dict):
        items = {name: values for name, values in items.items() if values is not ...}
    with pytest.raises(InputError) as wrong:
        build_request(schema, Rows(items, user), request_options("movies"))
    assert str(wrong.value) == message
    named = re.match(r"(?:user )?feature '([^']+)'(?:, row (\d+))?", message)
    if named:
        assert wrong.value.feature == named[1]
        assert wrong.value.row == (None if named[2] is None else int(named[2]))


EXAMPLE = tf.train.Example()
EXAMPLE.features.feature["age"].int64_list.value.append(31)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "items has no rows: there is nothing to rank"),
        (b"\x0a\x00", "expected a list of tf.Examples or their bytes, got bytes"),
        (EXAMPLE, "expected a list of tf.Examples, got one Example"),
        ([b"\x0a\x00", 7], "row 1: expected a proto or its bytes, got int"),
        (
            [b"", b"\x0a\x05\x0a"],
            "row 1: not a serialized tf.Example: not a valid Example",
        ),
        ([EXAMPLE], "feature 'city': missing (also: 'movie', 'vector'), and the model"),
    ],
)
def test_wrong_examples(schema: ModelSchema, examples: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        build_request(schema, examples_of_any(examples), request_options("movies"))


def test_an_example_with_two_values_for_one() -> None:
    two = tf.train.Example()
    two.features.feature["age"].int64_list.value.extend([31, 32])
    two.features.feature["movie"].float_list.value.append(1.5)
    schema = ModelSchema("m", 1, {"columnar": signature("columnar", spec("age", "int64", None))})
    with pytest.raises(InputError, match=r"'age', row 0: expected 1 values, the example has 2"):
        build_request(schema, examples_of_any([two]), request_options("m"))


@pytest.mark.parametrize(
    ("policies", "items", "message"),
    [
        (
            {"none": "error"},
            items(1, year=None),
            "feature 'year', row 1: expected float32, got None (NoneType); none='error'",
        ),
        (
            {"none": "error"},
            [{"year": 1.0, **item} for item in items(1, genres=None)],
            "feature 'genres', row 1: expected string, got None (NoneType); none='error'",
        ),
        (
            {"nan": "error"},
            items(1, year=float("nan")),
            "feature 'year', row 1: expected a finite float32, got nan (float): most models score "
            "it wrongly; for one that accepts it, such as a decision forest: Policies(nan='send')",
        ),
        (
            {"unused": "error"},
            items(1, poster="x"),
            "feature 'poster': the signature has no such feature",
        ),
    ],
)
def test_stricter_policies(
    schema: ModelSchema, policies: dict[str, Any], items: Any, message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        build_request(
            schema, Rows(items, USER), request_options("m", policies=Policies(**policies))
        )


def test_a_policy_that_does_not_exist() -> None:
    with pytest.raises(
        InputError, match="policy nan must be one of send, default, error, got 'zero'"
    ):
        Policies(nan="zero")  # type: ignore[arg-type]


def test_without_a_signature_a_masked_array_is_refused() -> None:
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
def test_errors_can_be_copied_and_pickled(error: Exception, again: Any) -> None:
    found = again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
