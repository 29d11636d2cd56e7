"""Missing values in every form are treated as None."""

import pickle
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from colcast.client import (
    DecodeError,
    InputError,
    ModelSchema,
    SchemaError,
    ServerError,
    encode_predict_request,
)
from colcast.client._errors import UnknownDtypeError
from colcast.client.columns._inputs import Rows

from .conftest import signature, spec
from .test_features import sent

YEARS = [2001.0, None, 1984.0]
VECTORS = [[1.0, 2.0], None, [3.0, 4.0]]
LISTS = [[1, 2], None, [3]]
MASK = [False, True, False]


@pytest.fixture
def schema() -> ModelSchema:
    """A model that has defaults for `year` and `vector`, and a list."""
    columnar = signature(
        "columnar",
        spec("movie", "int64", None),
        spec("year", "float32", None),
        spec("rank", "int64", None),
        spec("vector", "float32", None, 2),
        spec("list", "int64", None, None),
        spec("list/length", "int64", None),
        year=np.array([1990.0], np.float32),
        rank=np.array([-1]),
        vector=np.array([[0.5, 0.5]], np.float32),
    )
    examples = signature("serving_default", spec("examples", "string", None))
    return ModelSchema("m", 1, {"columnar": columnar, "serving_default": examples})


def masked(values: Any) -> Any:
    """A masked array of the values, whose masked entry hides a 7."""
    filled = [[7, 7] if v is None and isinstance(values[0], list) else v or 7 for v in values]
    mask = [[gap] * 2 for gap in MASK] if isinstance(values[0], list) else MASK
    return np.ma.array(filled, mask=mask)


ARROW = {
    "year": pa.array(YEARS, pa.float32()),
    "vector": pa.array(VECTORS),
    "list": pa.array(LISTS),
}
POLARS = {name: pl.Series(values.to_pylist()) for name, values in ARROW.items()}
NULLABLE = {"year": pd.Series(YEARS, dtype="Float64"), "list": pd.Series(LISTS)}
FORMS = {
    "masked arrays": {"year": masked(YEARS), "vector": masked(VECTORS)},
    "masked rows": [
        {"year": np.ma.masked if year is None else year, "movie": 1, "list": values}
        for year, values in zip(YEARS, LISTS, strict=True)
    ],
    "masked lists": {"list": [np.ma.array([1, 2]), None, np.ma.array([3], mask=[False])]},
    "Arrow arrays": ARROW,
    "Arrow chunks": {name: pa.chunked_array([values]) for name, values in ARROW.items()},
    "Arrow table": pa.table(ARROW),
    "Arrow batch": pa.record_batch(ARROW),
    "Polars series": POLARS,
    "Polars frame": pl.DataFrame(POLARS),
    "nullable series": NULLABLE,
    "nullable frame": pd.DataFrame(NULLABLE),
    "Arrow in pandas": pd.DataFrame({"year": pd.Series(YEARS, dtype="float64[pyarrow]")}),
}
EXPECTED = {
    "year": [2001.0, 1990.0, 1984.0],
    "vector": [[1.0, 2.0], [0.5, 0.5], [3.0, 4.0]],
    "list": [[1, 2], [0, 0], [3, 0]],
    "list/length": [2, 0, 1],
}


@pytest.mark.parametrize("form", FORMS)
def test_missing_items_take_the_default(schema: ModelSchema, form: str) -> None:
    items = FORMS[form]
    user = {} if form == "masked rows" else {"movie": 1}
    found = sent(schema, Rows(items, user))
    for name in EXPECTED.keys() & found.keys():
        if len(found[name]) == 3:
            assert found[name] == EXPECTED[name], name
    assert any(len(found.get(name, ())) == 3 for name in EXPECTED)


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array([7, 7], mask=True), None, pd.NA])
def test_missing_user_features_take_the_default(schema: ModelSchema, value: Any) -> None:
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        assert sent(schema, Rows([{"movie": 1}], {"year": value}))["year"] == [1990.0]
    found = sent(schema, Rows([{"movie": 1}], {"vector": value}))
    assert found["vector"] == [[0.5, 0.5]]


@pytest.mark.parametrize(("dtype", "default"), [("string", b"none"), ("bool", True)])
def test_a_column_of_only_nan_takes_the_default(dtype: str, default: Any) -> None:
    x = spec("x", dtype, None)
    columnar = signature("columnar", spec("movie", "int64", None), x, x=np.array([default]))
    items = pd.DataFrame({"movie": [1, 2], "x": [np.nan, np.nan]})
    found = sent(ModelSchema("m", 1, {"columnar": columnar}), Rows(items), "columnar")
    assert set(found["x"]) == {default}


def test_large_integers_beside_a_null_keep_every_digit(schema: ModelSchema) -> None:
    exact = 2**60 + 1
    for ranks in (
        pa.array([exact, None]),
        pl.Series([exact, None]),
        np.ma.array([exact, 7], mask=[0, 1]),
    ):
        assert sent(schema, Rows({"rank": ranks}, {"movie": 1}))["rank"] == [exact, -1]


def test_a_masked_value_without_default_is_refused_with_its_row(schema: ModelSchema) -> None:
    with pytest.raises(InputError, match=r"^feature 'movie', row 1: expected int64, got None"):
        sent(schema, Rows({"movie": np.ma.array([1, 2, 3], mask=MASK)}))
    with pytest.raises(InputError, match=r"^feature 'list', row 0: expected int64, got None"):
        sent(schema, Rows({"movie": [1], "list": np.ma.array([[1, 2]], mask=[[False, True]])}))


def test_a_masked_vector_in_an_example_has_no_entry(schema: ModelSchema) -> None:
    rows = Rows({"movie": [1, 2, 3], "vector": masked(VECTORS)})
    by_default = Rows({"movie": [1, 2, 3], "vector": VECTORS})
    assert sent(schema, rows, "example") == sent(schema, by_default, "example")
    only = ModelSchema("m", 1, {"serving_default": schema.signature("serving_default")})
    assert sent(only, rows, "example") == sent(only, by_default, "example")


def test_without_a_signature_a_masked_array_is_refused() -> None:
    with pytest.raises(InputError, match="feature 'x': has masked entries"):
        encode_predict_request("m", "s", {"x": np.ma.array([1, 2], mask=[0, 1])})
    whole = encode_predict_request("m", "s", {"x": np.ma.array([1, 2])})
    assert whole == encode_predict_request("m", "s", {"x": np.array([1, 2])})


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
