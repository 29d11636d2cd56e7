"""Data that cannot be a table is refused with the feature, the row and the value."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from colcast.client import InputError
from colcast.items import ItemTable, ItemTableError, build_delta, build_table
from colcast.items._sources import BATCH_ROWS
from colcast.zoo.saving import with_record

from .records import MOVIES, declared, model

ROWS = {
    "item_id": [7, 9, 11],
    "year": [2001.0, 1984.0, 1999.0],
    "title": ["Alien", "Brazil", "Cube"],
    "genres": [["War"], [], ["Noir", "War"]],
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
}
FRAME = pd.DataFrame(ROWS)


@pytest.fixture
def movies(tmp_path):
    return model(tmp_path / "model", **MOVIES)


@pytest.fixture
def table(tmp_path, movies):
    """The folder of a table that has version 1."""
    build_table(movies, FRAME, key="item_id", output=tmp_path / "table")
    return tmp_path / "table"


def refused(tmp_path, movies, frame, error=InputError, **more):
    """The error from building a table from the frame; checks that no file is left behind."""
    with pytest.raises(error) as raised:
        build_table(movies, frame, **{"key": "item_id", "output": tmp_path / "t", **more})
    output = tmp_path / "t"
    assert not output.exists() or not list(output.iterdir())
    return str(raised.value)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("year", [1.0, 1e300, 3], "feature 'year', row 1: 1e+300 (float) is too large for float32"),
        ("title", ["a", None, "c"], "feature 'title', row 1: expected string, got"),
        ("genres", [[], "War", []], "feature 'genres', row 1: expected a list of string"),
        ("vector", [[1, 2], [1], [1, 2]], "feature 'vector', row 1: expected float32 of shape [2]"),
        ("item_id", [7, 1.5, 9], "feature 'item_id', row 1: expected int64, got 1.5"),
        ("item_id", [7, 9, 7], "feature 'item_id', row 2: key 7 is also in row 0"),
        ("item_id", ["ż", "b", "ż"], "feature 'item_id', row 2: key 'ż' is also in row 0"),
    ],
)
def test_a_value_that_does_not_fit(tmp_path, movies, column, values, said):
    frame = pd.DataFrame(ROWS | {column: pd.Series(values, dtype=object)})
    assert said in refused(tmp_path, movies, frame)


def test_rows_are_counted_over_batches(tmp_path, movies):
    rows = BATCH_ROWS + 2
    titles = np.array(["a"] * rows, object)
    titles[rows - 1] = 5
    columns = {"item_id": range(rows), "title": titles, "vector": [[1.0, 2.0]] * rows}
    said = refused(tmp_path, movies, pd.DataFrame(columns))
    assert f"feature 'title', row {rows - 1}: expected string, got 5 (int)" in said


NAMES = ["item_id", "title", "title"]
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], NAMES)
KEY = "feature 'item_id': the key is not a column; the columns are 'genres', 'id'"


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        (FRAME.drop(columns="title"), {}, "'title': missing, and the model has no default for it"),
        (FRAME.rename(columns={"title": "titel"}), {}, "given but unused: 'titel'"),
        (FRAME.rename(columns={"item_id": "id"}), {}, KEY),
        (FRAME.iloc[:0], {}, "the source has no rows"),
        (TWICE, {}, "feature 'title': the frame has two columns of this name"),
        (5, {}, "expected a pandas or Polars DataFrame"),
        (Path("items.xlsx"), {}, "expected a file that ends in .parquet, .csv, .tfrecord"),
        (FRAME, {"key": "year"}, "float32"),
        (FRAME, {"key": "genres"}, "list"),
        (FRAME, {"domain": "shop"}, "no feature of domain 'shop'; its domains are item, user"),
    ],
)
def test_a_source_that_does_not_fit_the_model(tmp_path, movies, source, more, said):
    assert said in refused(tmp_path, movies, source, (InputError, ItemTableError), **more)


def test_a_missing_column_takes_its_default(tmp_path, movies):
    frame = FRAME.drop(columns=["year", "genres"])
    build_table(movies, frame, key="item_id", output=tmp_path / "t")
    table = ItemTable(tmp_path / "t")
    assert table.absent == ("genres", "year")
    assert table.get(9) == {"genres": [], "title": b"Brazil", "vector": [3.0, 4.0], "year": 1990.0}


def test_a_string_may_be_the_key(tmp_path, movies):
    build_table(movies, FRAME, key="title", output=tmp_path / "t")
    assert ItemTable(tmp_path / "t").get("Brazil")["title"] == b"Brazil"


def test_a_model_that_was_not_exported_or_whose_signatures_do_not_agree(tmp_path):
    said = refused(tmp_path, tmp_path, FRAME, ItemTableError)
    assert "expected a model that colcast export wrote" in said
    one, other = {"year": declared()}, {"year": declared(dtype="float32")}
    with_record(tmp_path, {"a": {"features": one}, "b": {"features": other}})
    said = refused(tmp_path, tmp_path, FRAME, ItemTableError)
    assert "two signatures declare feature 'year' differently" in said


def test_an_existing_version_is_refused(table, movies):
    with pytest.raises(ItemTableError, match="table/1 exists already"):
        build_table(movies, FRAME, key="item_id", output=table, version=1)
    assert build_table(movies, FRAME, key="item_id", output=table) == table / "2"


def test_a_delta_that_does_not_fit_its_table(table, tmp_path):
    with pytest.raises(InputError, match="feature 'year': missing, but the table has this column"):
        build_delta(table, FRAME.drop(columns="year"))
    with pytest.raises(InputError, match="feature 'item_id', row 1: key 9 is also deleted"):
        build_delta(table, FRAME, delete=[1, 9])
    with pytest.raises(InputError, match="no rows and no keys to delete"):
        build_delta(table)
    with pytest.raises(ItemTableError, match="has no table"):
        build_delta(tmp_path, FRAME)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-1], "table.safetensors"),
        (lambda data: data[:3], "the header claims"),
        (lambda data: b"", "cannot read"),
        (lambda data: data[:8] + b"x" + data[9:], "the header is not a JSON object"),
        (lambda data: data.replace(b"colcast-items", b"colcast-itemz"), "expected format"),
        (lambda data: data.replace(b'"U32"', b'"U99"'), "tensor 'index/rows'"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "it was changed or truncated"),
    ],
)
def test_a_file_that_was_changed(table, change, said):
    file = table / "1" / "table.safetensors"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(ItemTableError, match=said):
        ItemTable(table).verify()


def test_a_delta_of_another_version(table, movies):
    delta = build_delta(table, delete=[7])
    build_table(movies, FRAME.iloc[:2], key="item_id", output=table)
    delta.rename(table / "2" / delta.name)
    with pytest.raises(ItemTableError, match="not a delta of"):
        ItemTable(table)
