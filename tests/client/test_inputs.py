"""The same candidates in every form that services use make the same request."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, Policies
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples
from colcast.client.request._request import build_request
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import input_pb2, predict_pb2

from .conftest import ITEMS, USER, arrays, message, request_options, signature, spec

FULL = [{"year": 1990.0, **item} for item in ITEMS]
COLUMNS = {name: [item[name] for item in FULL] for name in FULL[0]}


def examples(schema: ModelSchema, **rows: Any) -> list[Any]:
    """The rows as tf.Examples."""
    found = message(schema, Rows(**rows), target="example").inputs["examples"].string_val
    return [tf.train.Example.FromString(data) for data in found]


FORMS = {
    "rows": FULL,
    "columns": COLUMNS,
    "arrays": {
        "movie": np.array(COLUMNS["movie"], np.int32),
        "year": np.array(COLUMNS["year"], np.float64),
        "genres": COLUMNS["genres"],
        "vector": np.array(COLUMNS["vector"]),
    },
    "padded arrays": {
        "movie": np.array(COLUMNS["movie"]),
        "year": np.array(COLUMNS["year"], np.float32),
        "genres": np.array([["Drama", ""], ["", ""], ["War", "Noir"]]),
        "genres/length": np.array([1, 0, 2]),
        "vector": np.array(COLUMNS["vector"], np.float16),
    },
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, categories": pd.DataFrame(COLUMNS).astype({"movie": "category", "year": "category"}),
    "pandas, sparse": pd.DataFrame(COLUMNS).astype({"movie": pd.SparseDtype("int64")}),
    "pandas, small and arrow": pd.DataFrame(COLUMNS).astype(
        {"movie": "Int8", "year": "float64[pyarrow]"}
    ),
    "pandas, floats": pd.DataFrame(COLUMNS).astype({"movie": "float64"}),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow, a batch": pa.record_batch(COLUMNS),
    "pyarrow, dictionaries": pa.table(
        {**COLUMNS, "movie": pa.array(COLUMNS["movie"]).dictionary_encode()}
    ),
    "pyarrow, chunks": {name: pa.chunked_array([values]) for name, values in COLUMNS.items()},
    "pandas series": dict(pd.DataFrame(COLUMNS).items()),
    "polars series": pl.DataFrame(COLUMNS).to_dict(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_makes_the_same_request(schema: ModelSchema, form: str) -> None:
    assert message(schema, Rows(FORMS[form], USER)) == message(schema, Rows(ITEMS, USER))


def test_examples_and_lists_with_context_make_the_same_request(schema: ModelSchema) -> None:
    expected = message(schema, Rows(ITEMS, USER))
    protos = examples(schema, user=USER, items=ITEMS)
    assert message(schema, Examples([proto.SerializeToString() for proto in protos])) == expected
    with_context = input_pb2.ExampleListWithContext()
    context, items = set(USER), set(FULL[0])
    for key, value in protos[0].features.feature.items():
        if key in context:
            with_context.context.features.feature[key].CopyFrom(value)
    for proto in protos:
        example = with_context.examples.add()
        for key, value in proto.features.feature.items():
            if key in items:
                example.features.feature[key].CopyFrom(value)
    from colcast.client.columns._inputs_examples import examples_of_any

    assert message(schema, examples_of_any(with_context)) == expected


def test_an_example_wins_over_its_context(schema: ModelSchema) -> None:
    from colcast.client.columns._inputs_examples import examples_of_any

    with_context = input_pb2.ExampleListWithContext()
    protos = examples(schema, user=USER, items=ITEMS)
    with_context.context.features.feature["age"].int64_list.value.append(99)
    for proto in protos:
        with_context.examples.add().CopyFrom(proto)
    assert message(schema, examples_of_any(with_context)) == message(schema, Rows(ITEMS, USER))


@pytest.mark.parametrize("order", [1, -1], ids=["shared value first", "shared value last"])
def test_the_last_value_of_a_key_that_an_example_has_twice_counts(
    schema: ModelSchema, order: int
) -> None:
    protos = examples(schema, user=USER, items=ITEMS)
    shared = protos[0].SerializeToString()
    data = [b"".join([shared, proto.SerializeToString()][::order]) for proto in protos]
    merged = [tf.train.Example.FromString(example).SerializeToString() for example in data]
    assert message(schema, Examples(data)) == message(schema, Examples(merged))


def test_two_values_of_a_key_in_all_examples_count_in_each_example_s_order(
    schema: ModelSchema,
) -> None:
    one, other = (
        proto.SerializeToString() for proto in examples(schema, user=USER, items=ITEMS)[:2]
    )
    data = [one + other, other + one]
    merged = [tf.train.Example.FromString(example).SerializeToString() for example in data]
    assert message(schema, Examples(data)) == message(schema, Examples(merged))


@pytest.mark.parametrize("packed", [True, False])
def test_examples_may_be_written_in_any_way_protobuf_allows(
    schema: ModelSchema, packed: bool
) -> None:
    protos = examples(schema, user=USER, items=ITEMS)
    if packed:
        data = [proto.SerializeToString() for proto in protos]
    else:
        data = [_unpacked(proto) for proto in protos]
        assert tf.train.Example.FromString(data[0]) == protos[0]
    assert message(schema, Examples(data)) == message(schema, Rows(ITEMS, USER))


def _unpacked(example: Any) -> bytes:
    """The example as an old writer might encode it: unpacked integers, and values before keys."""
    from colcast.client.wire import field, integer_field

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
def test_damaged_examples_are_read_or_refused(schema: ModelSchema, data: st.DataObject) -> None:
    good, damaged = _good_example(), bytearray(_good_example())
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


@lru_cache(maxsize=1)
def _good_example() -> bytes:
    example = tf.train.Example()
    for name, value in {**USER, **ITEMS[0]}.items():
        values = value if isinstance(value, list) else [value]
        feature = example.features.feature[name]
        if isinstance(values[0], str):
            feature.bytes_list.value.extend([text.encode() for text in values])
        else:
            kind = feature.int64_list if isinstance(values[0], int) else feature.float_list
            kind.value.extend(values)
    data: bytes = example.SerializeToString()
    return data


def test_long_features_of_examples(schema: ModelSchema) -> None:
    user = {**USER, "history": list(range(1000)), "city": "x" * 300}
    protos = examples(schema, user=user, items=ITEMS)
    data = [proto.SerializeToString() for proto in protos]
    assert message(schema, Examples(data)) == message(schema, Rows(ITEMS, user))


def filled(schema: ModelSchema, year: Any, **options: Any) -> Any:
    """The years that the client sends for the given values."""
    items = [{**item, "year": value} for item, value in zip(ITEMS, year, strict=True)]
    sent = message(schema, Rows(items, USER), **options).inputs["year"]
    return np.frombuffer(sent.tensor_content, np.float32)


GAPS: dict[str, list[Any]] = {
    "year": [2001.0, None, 1984.0],
    "rank": [2**60 + 1, None, 3],
    "word": ["b", None, "a"],
    "vector": [[1.0, 2.0], None, [3.0, 4.0]],
    "list": [[1, 2], None, [3]],
}
FILLED = {
    "year": [2001.0, 1990.0, 1984.0],
    "rank": [2**60 + 1, -1, 3],
    "word": [b"b", b"none", b"a"],
    "vector": [[1.0, 2.0], [0.5, 0.5], [3.0, 4.0]],
    "list": [[1, 2], [0, 0], [3, 0]],
    "list/length": [2, 0, 1],
}
NAMES: dict[str, Any] = {
    "rows": lambda name, values: [{} if v is None else {name: v} for v in values],
    "rows with None": lambda name, values: [{name: v} for v in values],
    "rows with pandas' marks": lambda name, values: [
        {name: pd.NA if v is None else v} for v in values
    ],
    "columns": lambda name, values: {name: values},
    "pyarrow": lambda name, values: pa.table({name: values}),
    "pyarrow, dictionary": lambda name, values: (
        {name: pa.array(values).dictionary_encode()}
        if name in ("year", "rank", "word")
        else {name: pa.array(values)}
    ),
    "polars": lambda name, values: pl.DataFrame({name: values}),
    "pandas, nullable": lambda name, values: {
        name: pd.Series(values, dtype={"year": "Float64", "rank": "Int64"}.get(name, "object"))
    },
    "pandas, categories": lambda name, values: {
        name: pd.Series(values, dtype="category" if name == "word" else "object")
    },
}


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
        year=np.array([1990.0], np.float32),
        rank=np.array([-1]),
        word=np.array([b"none"], object),
        vector=np.array([[0.5, 0.5]], np.float32),
    )
    return ModelSchema("m", 1, {"columnar": columnar})


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("form", NAMES)
def test_missing_values_in_every_form_take_the_default(
    gaps: ModelSchema, form: str, name: str
) -> None:
    found = arrays(message(gaps, Rows(NAMES[form](name, GAPS[name]), {"movie": 1})))
    for sent in (name, name + "/length"):
        assert (found[sent].tolist() if sent in found else None) == FILLED.get(sent), sent


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("value", [None, pd.NA, ...])
def test_a_missing_feature_of_the_user_takes_the_default(
    gaps: ModelSchema, name: str, value: Any
) -> None:
    user = {"movie": 1} if value is ... else {"movie": 1, name: value}
    found = arrays(message(gaps, Rows([{}], user), "repeated"))[name].tolist()
    assert found == [[0] if name == "list" else FILLED[name][1]]


FLOATS = st.floats(-1e6, 1e6, width=32)
LISTS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), min_size=3, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    year=st.lists(st.none() | FLOATS, min_size=3, max_size=3),
    rank=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    word=st.lists(st.none() | st.text(max_size=5), min_size=3, max_size=3),
    listed=LISTS,
)
def test_every_form_gives_the_same_request(
    gaps: ModelSchema, year: Any, rank: Any, word: Any, listed: Any
) -> None:
    columns = {"year": year, "rank": rank, "word": word, "list": listed}
    types = {
        "year": pa.float32(),
        "rank": pa.int64(),
        "word": pa.string(),
        "list": pa.list_(pa.int64()),
    }
    table = pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
    expected = message(gaps, Rows(columns, {"movie": 1}))
    for form in (
        table,
        table.to_batches()[0],
        pl.from_arrow(table),
        table.to_pylist(),
        pd.DataFrame(columns, dtype="object"),
        {name: table[name].to_numpy() for name in ("list",)}
        | {name: values for name, values in columns.items() if name != "list"},
    ):
        assert message(gaps, Rows(form, {"movie": 1})) == expected


@pytest.mark.parametrize(
    "make", [list, np.array, np.float32, pd.Series], ids=lambda it: it.__name__
)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_non_finite_values_are_refused_unless_allowed(
    schema: ModelSchema, make: Any, bad: float
) -> None:
    years = make([2.0, 1e3, bad])
    with pytest.raises(InputError, match=r"feature 'year', row 2: expected a finite float32, got "):
        filled(schema, years)
    sent = filled(schema, years, policies=Policies(nan="send"))
    np.testing.assert_array_equal(sent, [2.0, 1e3, bad])
    as_gap = Policies(nan="default")
    if np.isnan(bad):
        np.testing.assert_array_equal(filled(schema, years, policies=as_gap), [2.0, 1e3, 1990.0])
    else:
        with pytest.raises(InputError, match="row 2: expected a finite float32"):
            filled(schema, years, policies=as_gap)


@pytest.mark.parametrize("vector", [[1.0, float("inf"), 0.0], np.array([1.0, np.nan, 0.0])])
def test_non_finite_entries_of_a_vector_are_refused(schema: ModelSchema, vector: Any) -> None:
    items = [ITEMS[0], {**ITEMS[1], "vector": vector}, ITEMS[2]]
    for target in ("late", "example"):
        with pytest.raises(InputError, match=r"feature 'vector', row 1: expected a finite"):
            message(schema, Rows(items, USER), target=target)


def test_a_feature_whose_default_is_nan_accepts_nan(schema: ModelSchema) -> None:
    signatures = {
        name: replace(one, defaults={"year": np.array([np.nan], np.float32)})
        for name, one in schema.signatures.items()
    }
    forest = ModelSchema("movies", 3, signatures)
    years = [float("nan"), None, 3.0]
    np.testing.assert_array_equal(filled(forest, years), [np.nan, np.nan, 3.0])


@pytest.mark.parametrize(
    ("values", "got"),
    [
        (pd.to_datetime(["2001-01-01"] * 3), r"dates \(datetime64\[.*\]\)"),
        (pd.to_datetime(["2001-01-01"] * 3, utc=True), "Timestamp"),
        (pd.to_timedelta([1, 2, 3]), "Timedelta"),
        (pd.period_range("2001", periods=3), "Period"),
        (pd.Categorical(["a", "b", "a"]), r"'a' \(str\)"),
    ],
)
def test_pandas_types_that_are_no_numbers_are_refused(
    schema: ModelSchema, values: Any, got: str
) -> None:
    frame = pd.DataFrame(COLUMNS).assign(movie=values)
    with pytest.raises(InputError, match=f"feature 'movie', row 0: expected int64, got {got}"):
        message(schema, Rows(frame, USER))


def test_integers_that_pandas_turned_into_floats_are_restored(schema: ModelSchema) -> None:
    frame = pd.DataFrame(COLUMNS)
    frame["movie"] = frame["movie"].astype(float)
    assert message(schema, Rows(frame, USER)) == message(schema, Rows(ITEMS, USER))
    frame.loc[1, "movie"] = None
    with pytest.raises(
        InputError, match=r"feature 'movie', row 1: expected int64, got nan \(float\); the"
    ):
        message(schema, Rows(frame, USER))


def test_columns_that_are_not_used_are_dropped_and_named_once(
    schema: ModelSchema, caplog: pytest.LogCaptureFixture
) -> None:
    items = [{**item, "trailer": "http://...", "stock_level": 3} for item in ITEMS]
    for _ in range(2):
        assert message(schema, Rows(items, USER)) == message(schema, Rows(ITEMS, USER))
    assert [record.getMessage() for record in caplog.records] == [
        "not sent, the signature does not use them: stock_level, trailer"
    ]
    built = build_request(schema, Rows(items, USER), request_options("movies"))
    assert built.unused == 2


def test_nan_is_equal_to_itself_when_looking_for_equal_rows(schema: ModelSchema) -> None:
    rows = [{**USER, **item, "year": float("nan")} for item in ITEMS]
    policies = Policies(nan="send")
    sent = message(schema, Rows(rows), target="columnar", policies=policies).inputs["year"]
    assert sent.tensor_shape.dim[0].size == 1


def test_zero_and_minus_zero_are_not_equal(schema: ModelSchema) -> None:
    rows = [
        {**USER, **item, "year": zero} for item, zero in zip(ITEMS, [0.0, -0.0, 0.0], strict=True)
    ]
    policies = Policies(nan="send")
    sent = message(schema, Rows(rows), target="columnar", policies=policies).inputs["year"]
    assert sent.tensor_shape.dim[0].size == 3
