"""The same candidates in every form that services use make the same request."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, Policies
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples, examples_of_any
from colcast.client.request._prepared import PreparedItems
from colcast.client.request._request import build_request
from colcast.client.wire import field, integer_field
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import input_pb2, predict_pb2

from ..models.saving import serialized
from .conftest import COLUMNS, ITEMS, USER, arrays, message, request_options, signature, spec

Columns = dict[str, list[Any]]
TYPES: dict[str, Any] = {
    "year": pa.float32(),
    "rank": pa.int64(),
    "word": pa.string(),
    "vector": pa.list_(pa.float32()),
    "list": pa.list_(pa.int64()),
}
DEFAULTS: dict[str, Any] = {
    "year": 1990.0,
    "rank": -1,
    "word": "none",
    "vector": [0.5, 0.5],
    "list": [],
}


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def table_of(columns: Columns) -> Any:
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in columns.items()})


def series_of(columns: Columns, **dtypes: Any) -> Any:
    return {
        name: pd.Series(values, dtype=dtypes.get(name, "object"))
        for name, values in columns.items()
    }


FORMS: dict[str, Callable[[Columns], Any]] = {
    "rows": rows_of,
    "rows, none but the first with what is missing": lambda columns: [
        {name: value for name, value in row.items() if value is not None or not i}
        for i, row in enumerate(rows_of(columns))
    ],
    "rows with pandas' marks": lambda columns: [
        {name: pd.NA if value is None else value for name, value in row.items()}
        for row in rows_of(columns)
    ],
    "columns": lambda columns: columns,
    "pandas": lambda columns: pd.DataFrame(columns, dtype="object"),
    "pandas, nullable": lambda columns: pd.DataFrame(
        series_of(columns, year="Float64", rank="Int64", word="string")
    ),
    "pandas, arrow": lambda columns: series_of(
        columns, **{name: pd.ArrowDtype(of) for name, of in TYPES.items() if name != "vector"}
    ),
    "pandas, categories": lambda columns: series_of(columns, word="category"),
    "polars": lambda columns: pl.from_arrow(table_of(columns)),
    "polars series": lambda columns: pl.from_arrow(table_of(columns)).to_dict(),
    "pyarrow": table_of,
    "pyarrow, a batch": lambda columns: table_of(columns).to_batches()[0],
    "pyarrow, chunks": lambda columns: pa.concat_tables(
        [table_of(columns).slice(0, 1), table_of(columns).slice(1)]
    ),
    "pyarrow, dictionaries": lambda columns: {
        name: array.combine_chunks().dictionary_encode()
        if name in ("year", "rank", "word")
        else array
        for name, array in zip(columns, table_of(columns).columns, strict=True)
    },
}
COMPLETE: dict[str, Callable[[Columns], Any]] = {
    "arrays": lambda columns: {
        **columns,
        "year": np.array(columns["year"], np.float64),
        "rank": np.array(columns["rank"], np.int64),
        "word": np.array(columns["word"], object),
        "vector": np.array(columns["vector"], np.float32),
        "list": [np.array(values, np.int64) for values in columns["list"]],
    },
    "padded arrays": lambda columns: {
        **columns,
        "list": np.array([[*one, *[0] * (4 - len(one))] for one in columns["list"]]).reshape(-1, 4)[
            :, : max(1, *map(len, columns["list"]))
        ],
        "list/length": np.array([len(one) for one in columns["list"]]),
    },
    "pandas, sparse": lambda columns: pd.DataFrame(columns).astype(
        {"rank": pd.SparseDtype("int64")}
    ),
    "pandas, floats": lambda columns: pd.DataFrame(
        {**columns, "rank": [float(one) for one in columns["rank"]]}
    ),
}
"""Forms that hold no missing value."""


@pytest.fixture(scope="module")
def gaps() -> ModelSchema:
    """A model whose features all have defaults."""
    columnar = signature(
        "columnar",
        spec("movie", "int64", None),
        spec("year", "float32", None),
        spec("rank", "int64", None),
        spec("word", "string", None),
        spec("vector", "float32", None, 2),
        spec("list", "int64", None, None),
        spec("list/length", "int64", None),
        year=np.array([DEFAULTS["year"]], np.float32),
        rank=np.array([DEFAULTS["rank"]]),
        word=np.array([DEFAULTS["word"].encode()], object),
        vector=np.array([DEFAULTS["vector"]], np.float32),
    )
    return ModelSchema("m", 1, {"columnar": columnar})


def filled(columns: Columns) -> Columns:
    return {
        name: [DEFAULTS[name] if value is None else value for value in values]
        for name, values in columns.items()
    }


def expected(columns: Columns) -> dict[str, Any]:
    """The columns that a model reads, with N rows."""
    full = filled(columns)
    longest = max(1, *map(len, full["list"]))
    return {
        "year": np.array(full["year"], np.float32),
        "rank": np.array(full["rank"]),
        "word": np.array([word.encode() for word in full["word"]], object),
        "vector": np.array(full["vector"], np.float32),
        "list": np.array([[*one, *[0] * (longest - len(one))] for one in full["list"]]),
        "list/length": np.array([len(one) for one in full["list"]]),
    }


ROWS = 3
FLOATS = st.floats(-1e6, 1e6, width=32)
EXACT = st.integers(-(2**53) + 1, 2**53 - 1)  # a float64 holds them


@st.composite
def columns_with_gaps(draw: st.DrawFn) -> Columns:
    def three(values: Any) -> Any:
        return draw(st.lists(st.none() | values, min_size=ROWS, max_size=ROWS))

    return {
        "year": three(FLOATS),
        "rank": three(EXACT),
        "word": three(st.text(max_size=5)),
        "vector": three(st.lists(FLOATS, min_size=2, max_size=2)),
        "list": three(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)),
    }


@pytest.mark.parametrize("form", [*FORMS, *COMPLETE])
@settings(max_examples=20, deadline=None)
@given(columns=columns_with_gaps())
def test_every_form_gives_the_same_request(gaps: ModelSchema, form: str, columns: Columns):
    """Missing values take the default; candidates may have been prepared."""
    items = FORMS[form](columns) if form in FORMS else COMPLETE[form](filled(columns))
    sent = message(gaps, Rows(items, {"movie": 1}))
    assert sent == message(gaps, Rows(columns, {"movie": 1}))
    assert sent == message(gaps, Rows(PreparedItems(items), {"movie": 1}))
    found = arrays(sent)
    for name, values in expected(columns).items():
        np.testing.assert_array_equal(np.broadcast_to(found[name], values.shape), values)


@pytest.mark.parametrize("rank", [2**60 + 1, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("form", FORMS)
def test_integers_that_no_float_holds_stay_exact_beside_a_gap(
    gaps: ModelSchema, form: str, rank: int
):
    columns = {"rank": [rank, None, 3]}
    found = arrays(message(gaps, Rows(FORMS[form](columns), {"movie": 1})))
    assert found["rank"].tolist() == [rank, -1, 3]


@pytest.mark.parametrize("value", [None, pd.NA, ...])
def test_a_missing_feature_of_the_user_takes_the_default(gaps: ModelSchema, value: Any):
    user = {"movie": 1} | ({} if value is ... else dict.fromkeys(TYPES, value))
    found = arrays(message(gaps, Rows([{}], user), "repeated"))
    for name, values in expected({name: [None] for name in TYPES}).items():
        np.testing.assert_array_equal(found[name], values)


def examples(schema: ModelSchema, **rows: Any) -> list[Any]:
    """The rows as tf.Examples."""
    found = message(schema, Rows(**rows), target="example").inputs["examples"].string_val
    return [tf.train.Example.FromString(data) for data in found]


@pytest.mark.parametrize("wins", [False, True])
def test_lists_with_context_make_the_same_request(schema: ModelSchema, wins: bool):
    """Either the context has the user's features, or each example overrides the context's."""
    protos = examples(schema, user=USER, items=ITEMS)
    with_context = input_pb2.ExampleListWithContext()
    context = with_context.context.features.feature
    for key, value in protos[0].features.feature.items():
        if key in USER:
            context[key].CopyFrom(value)
    if wins:
        context["age"].int64_list.value[:] = [99]
    for proto in protos:
        example = with_context.examples.add()
        for key, value in proto.features.feature.items():
            if key in COLUMNS or wins:
                example.features.feature[key].CopyFrom(value)
    assert message(schema, examples_of_any(with_context)) == message(schema, Rows(ITEMS, USER))


@pytest.mark.parametrize("pairs", [("aa", "ab", "ac"), ("aa", "ba", "ca"), ("ab", "ba")], ids=str)
def test_the_last_value_of_a_key_that_an_example_has_twice_counts(
    schema: ModelSchema, pairs: tuple[str, ...]
):
    protos = examples(schema, user=USER, items=ITEMS)
    single = {name: p.SerializeToString() for name, p in zip("abc", protos, strict=True)}
    data = [single[first] + single[second] for first, second in pairs]
    merged = [tf.train.Example.FromString(example).SerializeToString() for example in data]
    assert message(schema, Examples(data)) == message(schema, Examples(merged))


def test_examples_may_be_written_in_any_way_protobuf_allows(schema: ModelSchema):
    user = {**USER, "history": list(range(1000)), "city": "x" * 300}
    protos = examples(schema, user=user, items=ITEMS)
    data = [_unpacked(proto) for proto in protos]
    assert tf.train.Example.FromString(data[0]) == protos[0]
    assert message(schema, Examples(data)) == message(schema, Rows(ITEMS, user))


def _unpacked(example: Any) -> bytes:
    """The example as an old writer might encode it: unpacked integers, and values before keys."""
    entries = b""
    for key, value in example.features.feature.items():
        if value.HasField("int64_list"):
            numbers = b"".join(integer_field(1, number) for number in value.int64_list.value)
            content = field(3, numbers)
        elif value.HasField("float_list"):
            floats = np.array(value.float_list.value, "<f4")
            content = field(2, b"".join(b"\x0d" + number.tobytes() for number in floats))
        else:
            content = value.SerializeToString()
        entries += field(1, field(2, content) + field(1, key.encode()))
    return field(1, entries)


@given(st.data())
def test_damaged_examples_are_read_or_refused(schema: ModelSchema, data: st.DataObject):
    good = serialized({**USER, **ITEMS[0]})
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    try:
        built = build_request(
            schema, Examples([good, bytes(damaged[:cut])]), request_options("movies", "columnar")
        )
    except InputError:
        return
    predict_pb2.PredictRequest.FromString(built.message)


def years_of(schema: ModelSchema, year: Any, **options: Any) -> Any:
    """The years that the client sends for the given values."""
    items = [{**item, "year": value} for item, value in zip(ITEMS, year, strict=True)]
    sent = message(schema, Rows(items, USER), **options).inputs["year"]
    return np.frombuffer(sent.tensor_content, np.float32)


@pytest.mark.parametrize(
    "make", [list, np.array, np.float32, pd.Series], ids=lambda it: it.__name__
)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_non_finite_values_are_refused_unless_allowed(schema: ModelSchema, make: Any, bad: float):
    years = make([2.0, 1e3, bad])
    with pytest.raises(InputError, match=r"feature 'year', row 2: expected a finite float32, got "):
        years_of(schema, years)
    sent = years_of(schema, years, policies=Policies(nan="send"))
    np.testing.assert_array_equal(sent, [2.0, 1e3, bad])
    as_gap = Policies(nan="default")
    if np.isnan(bad):
        np.testing.assert_array_equal(years_of(schema, years, policies=as_gap), [2.0, 1e3, 1990.0])
    else:
        with pytest.raises(InputError, match="row 2: expected a finite float32"):
            years_of(schema, years, policies=as_gap)


@pytest.mark.parametrize("vector", [[1.0, float("inf"), 0.0], np.array([1.0, np.nan, 0.0])])
def test_non_finite_entries_of_a_vector_are_refused(schema: ModelSchema, vector: Any):
    items = [ITEMS[0], {**ITEMS[1], "vector": vector}, ITEMS[2]]
    for target in ("late", "example"):
        with pytest.raises(InputError, match=r"feature 'vector', row 1: expected a finite"):
            message(schema, Rows(items, USER), target=target)


def test_a_feature_whose_default_is_nan_accepts_nan(schema: ModelSchema):
    signatures = {
        name: replace(one, defaults={"year": np.array([np.nan], np.float32)})
        for name, one in schema.signatures.items()
    }
    forest = ModelSchema("movies", 3, signatures)
    years = [float("nan"), None, 3.0]
    np.testing.assert_array_equal(years_of(forest, years), [np.nan, np.nan, 3.0])


def test_columns_that_are_not_used_are_dropped_and_named_once(
    schema: ModelSchema, caplog: pytest.LogCaptureFixture
):
    items = [{**item, "trailer": "http://...", "stock_level": 3} for item in ITEMS]
    for _ in range(2):
        assert message(schema, Rows(items, USER)) == message(schema, Rows(ITEMS, USER))
    assert [record.getMessage() for record in caplog.records] == [
        "not sent, the signature does not use them: stock_level, trailer"
    ]
    built = build_request(schema, Rows(items, USER), request_options("movies"))
    assert built.unused == 2


NAN = float("nan")


@pytest.mark.parametrize(("years", "rows"), [([NAN, NAN, NAN], 1), ([0.0, -0.0, 0.0], 3)])
def test_rows_are_equal_if_their_bits_are(schema: ModelSchema, years: list[float], rows: int):
    items = [{**USER, **item, "year": year} for item, year in zip(ITEMS, years, strict=True)]
    policies = Policies(nan="send")
    sent = message(schema, Rows(items), target="columnar", policies=policies).inputs["year"]
    assert sent.tensor_shape.dim[0].size == rows
