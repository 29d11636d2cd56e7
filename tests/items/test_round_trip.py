"""Values survive a build, for every kind of frame and feature."""

import os
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from colcast.items import ItemTable, build_delta, build_table
from hypothesis import given, settings
from hypothesis import strategies as st

from .records import declared, model

# An in-memory folder, because a busy disk would slow down every table.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = {"bfloat16": 16, "float16": 16, "float32": 32, "float64": 64}
_KINDS = ("fixed_len", "var_len", "fixed_len_sequence", "ragged")


def scalars(dtype: str) -> st.SearchStrategy[Any]:
    """Values of a dtype, as Python objects."""
    if dtype == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    if dtype == "bool":
        return st.booleans()
    if dtype in _FLOATS:
        found = st.floats(width=_FLOATS[dtype], allow_nan=False)
        return found.map(_bfloat16) if dtype == "bfloat16" else found
    bounds = np.iinfo(dtype)
    most = np.iinfo(np.int64).max  # Arrow reads Python's integers as int64, whatever the dtype
    return st.integers(int(bounds.min), min(int(bounds.max), int(most)))


def _bfloat16(value: float) -> float:
    return float(ml_dtypes.bfloat16(value))


def nested(values: st.SearchStrategy[Any], shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Nested lists that have a given shape."""
    for size in reversed(shape):
        values = st.lists(values, min_size=size, max_size=size)
    return values


@st.composite
def tables(draw: Any) -> tuple[dict[str, Any], list[Any], dict[str, list[Any]]]:
    """Features as the record describes them, keys, and each feature's values (some None)."""
    strings = draw(st.booleans())
    key = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    integers = st.integers(-(2**63), 2**63 - 1)
    keys = draw(st.lists(key if strings else integers, min_size=1, max_size=12, unique=True))
    features, columns = {}, {}
    for number in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from(("string", "bool", *_INTEGERS, *_FLOATS)))
        kind = draw(st.sampled_from(_KINDS))
        shape = draw(st.sampled_from(((), (2,), (2, 1)) if kind.startswith("fixed") else ((),)))
        one = nested(scalars(dtype), shape)
        value = one if kind == "fixed_len" else st.lists(one, max_size=3)
        default = None
        if kind == "fixed_len" and draw(st.booleans()):
            default = np.array(draw(one), object).reshape(-1).tolist()
        required = kind == "fixed_len" and default is None
        rows = st.lists(
            value if required else st.none() | value, min_size=len(keys), max_size=len(keys)
        )
        features[f"f{number}"] = declared(kind, dtype, shape, default)
        columns[f"f{number}"] = draw(rows)
    return features, keys, columns


def as_read(feature: dict[str, Any], value: Any) -> Any:
    """The value that a reader of the table gets for a given value; None means missing."""
    if value is None:
        if feature["kind"] != "fixed_len":
            return []
        flat = np.empty(len(feature["default"]), object)
        flat[:] = feature["default"]
        value = flat.reshape(feature["shape"]).tolist()
    return _bytes(value)


def _bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [_bytes(one) for one in value]
    return value.encode() if isinstance(value, str) else value


def frame_of(library: str, keys: list[Any], columns: dict[str, list[Any]]) -> Any:
    """The rows as a frame of one library."""
    data = {"item_id": keys, **columns}
    if library == "pandas":
        series = {name: pd.Series(values, dtype=object) for name, values in data.items()}
        return pd.DataFrame(series)
    if library == "polars":
        return pl.DataFrame(data, strict=False, infer_schema_length=None)
    return pa.table({name: pa.array(values) for name, values in data.items()})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@settings(max_examples=60, deadline=None)
@given(tables())
def test_values_survive_a_round_trip(library, table):
    features, keys, columns = table
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        record = model(Path(name, "model"), **features)
        build_table(record, frame_of(library, keys, columns), key="item_id", output=Path(name, "t"))
        built = ItemTable(Path(name, "t"))
        built.verify()
        assert len(built) == len(keys)
        for row, key in enumerate(keys):
            expected = {n: as_read(features[n], values[row]) for n, values in columns.items()}
            assert built.get(key) == expected
        other = (
            "?" * 10 if isinstance(keys[0], str) else next(k for k in range(99) if k not in keys)
        )
        assert built.get(other) is None


@settings(max_examples=25, deadline=None)
@given(tables(), st.data())
def test_a_table_with_deltas_is_the_same_as_a_dict_that_was_changed_in_their_order(table, data):
    features, keys, columns = table
    rows = {
        key: {n: as_read(features[n], values[row]) for n, values in columns.items()}
        for row, key in enumerate(keys)
    }
    some = st.lists(st.sampled_from(range(len(keys))), unique=True)
    with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
        folder = Path(name, "t")
        record = model(Path(name, "model"), **features)
        first = data.draw(st.lists(st.sampled_from(range(len(keys))), min_size=1, unique=True))
        frame = frame_of("pandas", keys, columns)
        build_table(record, frame.iloc[first], key="item_id", output=folder)
        expected = {keys[row]: rows[keys[row]] for row in first}
        for _ in range(data.draw(st.integers(1, 3))):
            written = data.draw(some)
            gone = [keys[row] for row in data.draw(some) if row not in written]
            if not gone and not written:
                continue
            build_delta(folder, frame.iloc[written], delete=gone)
            expected |= {keys[row]: rows[keys[row]] for row in written}
            expected = {key: row for key, row in expected.items() if key not in gone}
        now = ItemTable(folder)
        now.verify()
        assert len(now) == len(expected)
        assert {key: now.get(key) for key in keys} == {key: expected.get(key) for key in keys}
