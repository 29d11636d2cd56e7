"""Deltas of embedding tables: the file's contents, and refusals that name the culprit."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash
from click.testing import CliRunner
from colcast.client import InputError
from colcast.items import ItemTableError, build_row_delta
from colcast.items._container import Container
from colcast.items._variables import variables_of
from colcast.items.cli import tables as command
from pyarrow import parquet

from ..models import tables


@pytest.fixture(scope="module", name="model")
def _model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("model")
    tables.save(base_path / "1")
    return base_path


@pytest.fixture(autouse=True)
def _remove_deltas(model: Path) -> Any:
    yield
    for file in (model / "1/deltas").glob("*"):
        file.unlink()


def vectors(rows: int, *shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(rows).normal(size=(rows, *shape)).astype(dtype)


def run(*args: Any) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(arg) for arg in args])
    return result.exit_code, result.output


def test_variables_are_read_without_tensorflow(model: Path):
    found = variables_of(model / "1")
    assert found["by_handle"][1:] == (found["whole"].dtype, (50, 7))
    assert (found["of_halves"].dtype.name, found["of_halves"].shape) == ("float16", (50, 3, 2))
    assert found["of_halves"].size == 50 * 6 * 2


@pytest.mark.parametrize("kind", ["npz", "folder", "parquet", "frame", "arrow"])
def test_rows_of_any_source_are_in_the_file_by_id(kind: str, model: Path, tmp_path: Path):
    ids, rows = np.array([40, 0, 7]), vectors(3, 7)
    source: Any = pd.DataFrame({"id": ids, "vector": list(rows)})
    if kind == "npz":
        source = tmp_path / "rows.npz"
        np.savez(source, id=ids, vector=rows)
    elif kind == "folder":
        source = tmp_path
        np.savez(source / "a.npz", id=ids[:2], vector=rows[:2])
        np.savez(source / "b.npz", id=ids[2:], vector=rows[2:])
    elif kind != "frame":
        flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 7)
        source = pa.table({"id": ids, "vector": flat})
        if kind == "parquet":
            parquet.write_table(source, tmp_path / "rows.parquet")
            source = tmp_path / "rows.parquet"
    file = Container(build_row_delta(model, source, table="by_handle"), "colcast-rows")
    file.verify()
    assert file.path == model / "1/deltas/delta-000001.safetensors"
    assert file.tensors["ids"].tolist() == [0, 7, 40]
    assert file.tensors["rows"].tobytes() == rows[[1, 2, 0]].tobytes()
    assert file.tensors["table"].tobytes() == b"by_handle"
    index = (model / "1/variables/variables.index").read_bytes()
    assert file.metadata["checkpoint"] == xxhash.xxh3_64_hexdigest(index)


def test_rows_of_several_dimensions_and_other_types(model: Path, tmp_path: Path):
    rows = vectors(2, 3, 2, dtype=np.float16)
    np.savez(tmp_path / "rows.npz", id=[1, 2], vector=rows)
    path = build_row_delta(model, tmp_path / "rows.npz", table="of_halves")
    file = Container(path, "colcast-rows")
    assert file.tensors["rows"].tobytes() == rows.tobytes()


def test_deltas_are_numbered(model: Path):
    frame = pd.DataFrame({"id": [1], "vector": list(vectors(1, 7))})
    names = [build_row_delta(model, frame, table=table).name for table in ("by_handle", "whole")]
    assert names == ["delta-000001.safetensors", "delta-000002.safetensors"]
    code, said = run("inspect", model, "--json")
    assert code == 0
    found = json.loads(said)
    assert [(one["sequence"], one["table"], one["rows"]) for one in found["deltas"]] == [
        (1, "by_handle", 1),
        (2, "whole", 1),
    ]
    assert {"name": "by_handle", "dtype": "float32", "shape": [50, 7], "bytes": 1400} in (
        found["tables"]
    )
    printed = run("inspect", model)[1]
    assert re.search(r"\n +2 +whole +1 ", printed)
    assert re.search(r"\n +by_handle +float32 +\[50, 7\] +1.4 kB ", printed)
    assert "log and --server" in printed


@pytest.mark.parametrize(
    ("ids", "rows", "said"),
    [
        ([1, 50], vectors(2, 7), "feature 'id', row 1: 50 is not a row: table 'by_handle' has 50"),
        ([-1], vectors(1, 7), "feature 'id', row 0: -1 is not a row"),
        ([3, 4, 3], vectors(3, 7), "feature 'id', row 2: key 3 is also in row 0"),
        ([3], vectors(1, 6), "feature 'vector', row 0: expected float32 of shape [7]"),
        ([], vectors(0, 7), "no rows"),
    ],
)
def test_rows_that_do_not_fit_are_named(ids: list[int], rows: Any, said: str, model: Path):
    frame = pd.DataFrame({"id": np.array(ids, np.int64), "vector": list(rows)})
    with pytest.raises(InputError) as error:
        build_row_delta(model, frame, table="by_handle")
    assert said in str(error.value)
    assert not list((model / "1/deltas").glob("*"))


def test_a_missing_table_or_model_is_named(model: Path, tmp_path: Path):
    frame = pd.DataFrame({"id": [1], "vector": list(vectors(1, 7))})
    with pytest.raises(InputError, match=r"no table 'none'; its tables are 'axis', 'by_handle'"):
        build_row_delta(model, frame, table="none")
    with pytest.raises(ItemTableError, match="no table"):
        build_row_delta(tmp_path, frame, table="none")
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ItemTableError, match=r"variables\.index"):
        build_row_delta(tmp_path, frame, table="none")
    (tmp_path / "variables").mkdir()
    (tmp_path / "variables/variables.index").touch()
    with pytest.raises(ItemTableError, match="is not a SavedModel"):
        build_row_delta(tmp_path, frame, table="none")
    (tmp_path / "rows.npz").write_bytes(b"PK")
    code, said = run("delta", model, "--table", "whole", "--from", tmp_path / "rows.npz")
    assert (code, "rows.npz" in said) == (1, True)


def test_a_delta_that_was_changed_is_named(model: Path):
    frame = pd.DataFrame({"id": [1], "vector": list(vectors(1, 7))})
    path = build_row_delta(model, frame, table="by_handle")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, said = run("inspect", model)
    assert (code, str(path) in said, "checksum" in said) == (1, True, True)
