"""Builds the same items from every kind of file on the command line."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.items import ItemTable, build_table
from colcast.items._sources import BATCH_ROWS, batches_of
from pyarrow import parquet

from ..models.saving import serialized
from .records import declared, model

FEATURES = {
    "count": declared(default=[3]),
    "price": declared(dtype="float32"),
    "title": declared(dtype="string", default=["none"]),
    "new": declared(dtype="bool"),
    "genres": declared("var_len", "string"),
    "scores": declared("ragged", "float32"),
    "steps": declared("fixed_len_sequence", "int64", default=[-1]),
    "grid": declared(dtype="float32", shape=(2, 2)),
}
GRID = [[1.0, 2.0], [3.0, 4.0]]
EXPECTED = {
    7: {
        "count": 5,
        "price": 0.5,
        "title": 'Żółw, "1"!'.encode(),
        "new": True,
        "genres": [b"War", b"Noir"],
        "scores": [0.25],
        "steps": [1, 2],
        "grid": GRID,
    },
    -9: {
        "count": 3,
        "price": float("inf"),
        "title": b"none",
        "new": False,
        "genres": [],
        "scores": [],
        "steps": [],
        "grid": GRID,
    },
}
CSV = """\
item_id,count,price,title,new,genres,scores,steps,grid,other
7,5,0.5,"Żółw, ""1""!",true,War|Noir,0.25,1|2,1|2|3|4,x
-9,,inf,,false,,,,1|2|3|4,
"""


def arrow():
    """The rows as an Arrow table, whose two-dimensional vectors are flat lists."""
    return pa.table(
        {
            "item_id": [7, -9],
            "count": [5, None],
            "price": pa.array([0.5, float("inf")], pa.float64()),
            "title": ['Żółw, "1"!', None],
            "new": [True, False],
            "genres": [["War", "Noir"], None],
            "scores": pa.array([[0.25], []], pa.list_(pa.float32())),
            "steps": [[1, 2], None],
            "grid": pa.array([[1, 2, 3, 4]] * 2, pa.list_(pa.float32(), 4)),
            "other": ["x", None],
        }
    )


@pytest.fixture
def files(tmp_path):
    """A folder with the model, and the rows in a file of every kind."""
    model(tmp_path / "model", **FEATURES)
    (tmp_path / "items.csv").write_text(CSV)
    parquet.write_table(arrow(), tmp_path / "items.parquet")
    (tmp_path / "several").mkdir()
    for row in range(2):
        parquet.write_table(arrow().slice(row, 1), tmp_path / "several" / f"{row}.parquet")
    with tf.io.TFRecordWriter(str(tmp_path / "items.tfrecord")) as writer:
        for row in arrow().to_pylist():
            row["new"] = None if row["new"] is None else int(row["new"])
            writer.write(serialized({name: value for name, value in row.items() if value}))
    return tmp_path


def built(files, name, *more):
    """Builds a table from a file; returns the exit code."""
    args = ["--model", str(files / "model"), "--from", str(files / name), "--key", "item_id"]
    return main(["items", "build", *args, "--output", str(files / "table"), *more])


@pytest.mark.parametrize("name", ["items.csv", "items.parquet", "several"])
def test_the_rows_of_a_file_are_those_of_the_table(files, name, capsys):
    assert built(files, name) == 0, capsys.readouterr().err
    table = ItemTable(files / "table")
    assert {key: table.get(key) for key in EXPECTED} == EXPECTED
    assert "table/1: 2 items" in capsys.readouterr().out


def test_tf_examples_are_rows(files, capsys):
    features = {name: one for name, one in FEATURES.items() if name != "new"}
    model(files / "model", **features)
    assert built(files, "items.tfrecord") == 0, capsys.readouterr().err
    table = ItemTable(files / "table")
    for key, row in EXPECTED.items():
        assert table.get(key) == {name: row[name] for name in features}


def test_keys_of_a_csv_file_are_integers_if_the_first_is_written_as_one(files):
    text = CSV.replace("\n7,", "\n007,")
    (files / "items.csv").write_text(text)
    assert built(files, "items.csv") == 0
    table = ItemTable(files / "table")
    assert table.schema.key_dtype == "string"
    assert table.get("007")["count"] == 5
    assert table.get("7") is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",5,", ",5.5,", "feature 'count', row 0: expected int64, got '5.5'"),
        ("false", "maybe", "feature 'new', row 1: expected bool, got 'maybe'"),
        ("0.25", "0.25|x", "feature 'scores', row 0: expected float32, got"),
        ("1|2|3|4,\n", "1|2|3,\n", "feature 'grid', row 1: expected float32 of shape [2, 2]"),
        ("\n-9,", "\nnine,", "feature 'item_id', row 1: expected int64, got 'nine'"),
        (",x\n", ",x,y\n", "items.csv"),
    ],
)
def test_a_cell_that_does_not_fit(files, capsys, old, new, said):
    (files / "items.csv").write_text(CSV.replace(old, new))
    assert built(files, "items.csv") == 1
    assert said in capsys.readouterr().err


def test_rows_are_counted_over_the_files_of_a_folder(files, capsys):
    for name, text in (("a", CSV), ("b", CSV.replace("\n-9,", "\nnine,"))):
        (files / "several" / f"{name}.csv").write_text(text)
    for path in (files / "several").glob("*.parquet"):
        path.unlink()
    assert built(files, "several") == 1
    assert "feature 'item_id', row 3: expected int64, got 'nine'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["items.parquet", "items.tfrecord", "items.csv", "items.npz"])
def test_a_file_that_does_not_match_its_ending(files, capsys, name):
    (files / name).write_bytes(b"\x00\x01\x02" * 100)
    assert built(files, name) == 1
    assert "colcast items" in capsys.readouterr().err
    assert not list((files / "table").glob("*"))


def test_a_source_may_be_a_reader_of_record_batches(files):
    reader = pa.RecordBatchReader.from_batches(arrow().schema, arrow().to_batches())
    build_table(files / "model", reader, key="item_id", output=files / "table")
    assert ItemTable(files / "table").get(7) == EXPECTED[7]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
def test_rows_of_a_slice_are_those_of_the_slice(tmp_path, text):
    features = {"title": declared(dtype="string"), "genres": declared("var_len", "string")}
    model(tmp_path / "model", **features)
    columns = {
        "item_id": pa.array([1, 2, 3]),
        "title": pa.array(["one", "two", "three"], text),
        "genres": pa.array([["War"], ["Noir", "War"], []], pa.list_(text)),
    }
    source = pa.table(columns).slice(1)
    build_table(tmp_path / "model", source, key="item_id", output=tmp_path / "table")
    table = ItemTable(tmp_path / "table")
    assert table.get(1) is None
    assert table.get(2) == {"title": b"two", "genres": [b"Noir", b"War"]}
    assert table.get(3) == {"title": b"three", "genres": []}


def test_a_default_that_the_column_cannot_hold_is_not_rounded(tmp_path):
    model(tmp_path / "model", price=declared(dtype="float64", default=[0.1]))
    source = pa.table({"item_id": [1, 2], "price": pa.array([None, 0.5], pa.float32())})
    build_table(tmp_path / "model", source, key="item_id", output=tmp_path / "table")
    assert ItemTable(tmp_path / "table").get(1) == {"price": 0.1}


def test_a_parquet_file_is_never_in_memory_as_a_whole(tmp_path):
    random, groups, path = np.random.default_rng(1), 20, tmp_path / "large.parquet"
    names = [f"f{number}" for number in range(8)]
    group = pa.table({name: random.integers(0, 1 << 60, BATCH_ROWS) for name in names})
    with parquet.ParquetWriter(path, group.schema) as writer:
        for _ in range(groups):
            writer.write_table(group)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for batch in batches_of(path, {}, "f0"):
        rows += len(batch["f0"])
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == groups * BATCH_ROWS
    assert most < groups / 3 * group.nbytes


def test_nan_in_pandas_is_a_missing_value_and_in_arrow_a_number(files):
    model(files / "model", price=declared(dtype="float32", default=[9.0]))
    rows = {"item_id": [1], "price": [float("nan")]}
    for source in (pd.DataFrame(rows), pa.table(rows)):
        build_table(files / "model", source, key="item_id", output=files / "table")
    assert ItemTable(files / "table", 1).get(1) == {"price": 9.0}
    assert str(ItemTable(files / "table", 2).get(1)) == "{'price': nan}"


def test_deltas_as_shown_by_inspect(files, capsys):
    built(files, "items.parquet")
    (files / "gone").write_text("7\n\n12\n")
    (files / "new.csv").write_text(CSV.splitlines()[0] + "\n5,1,2,five,true,,,,0|0|0|0,\n")
    table = str(files / "table")
    delta = ["items", "delta", "--table", table, "--from", str(files / "new.csv")]
    assert main([*delta, "--delete", str(files / "gone")]) == 0
    capsys.readouterr()
    assert main(["items", "inspect", table, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["rows"], shown["table"]["rows"]) == (2, 2)
    assert [(one["rows"], one["deleted"]) for one in shown["deltas"]] == [(1, 2)]
    assert main(["items", "inspect", table]) == 0
    printed = capsys.readouterr().out
    assert "\nkey  item_id\nkey_dtype  int64\nrows  2\n" in printed
    assert re.search(r"\ntable  rows 2, bytes [\d.]+ kB, created 20\S+ [\d:]{8}\n", printed)
    assert main(["items", "inspect", table, "5"]) == 0
    assert "title  five" in capsys.readouterr().out
    assert main(["items", "inspect", table, "7"]) == 1
    assert "has no key 7" in capsys.readouterr().err
    assert main(["items", "inspect", table, "x"]) == 1
    assert "key 'x': the table's keys are integers" in capsys.readouterr().err
