"""Mapped tables: answers are bit-identical, of no changed file, and follow deltas of rows."""

import json
import os
import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from click.testing import CliRunner
from colcast.items import build_row_delta
from colcast.items.cli import tables as command

from ..models import tables
from ..waiting import wait_until
from .metrics_page import Metrics, status
from .servers import AS_SAVED, NOTHING_KEPT, Stubs

DATA = "variables/variables.data-00000-of-00001"
IDS = np.int64([3, 0, 49, 3, 17])
SEEDS = count(1)
MAPPED_BYTES = 6 * 50 * 7 * 4 + 50 * 6 * 2 + 1  # the last byte is the table `aa`


@pytest.fixture(name="saved")
def _saved(tmp_path: Path) -> Path:
    """A version with unique tables, because models with equal tables share a file."""
    tables.save(tmp_path / "saved" / "1", seed=next(SEEDS))
    return tmp_path / "saved" / "1"


@pytest.fixture(name="base_path")
def _base_path(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "ranker" / "1")
    return tmp_path / "ranker"


@pytest.fixture(name="stubs")
def _stubs(base_path: Path, serve: Callable[..., Stubs]) -> Stubs:
    return serve(base_path)


@pytest.fixture(name="ask")
def _ask(stubs: Stubs) -> Callable[..., np.ndarray]:
    def ask(signature: str = "by_handle", ids: np.ndarray = IDS) -> np.ndarray:
        (answer,) = stubs.predict({"ids": ids}, signature_name=signature).values()
        return np.asarray(answer)

    return ask


def refusal(ask: Callable[..., Any], *args: Any) -> grpc.RpcError | None:
    try:
        ask(*args)
    except grpc.RpcError as error:
        return error
    return None


def is_damaged(ask: Callable[..., Any]) -> bool:
    error = refusal(ask)
    return error is not None and error.code() == grpc.StatusCode.DATA_LOSS


@pytest.mark.parametrize("flags", [(), AS_SAVED])
def test_every_way_of_reading_gives_tensorflows_bits_and_errors(
    flags: tuple[str, ...], saved: Path, base_path: Path, serve: Callable[..., Stubs]
):
    client = serve(base_path, *flags)
    original = tf.saved_model.load(str(saved)).signatures
    for ids in (IDS, IDS[:1], IDS[:0], np.arange(50)):
        for name in [*tables.GATHERED, *tables.OTHERWISE, "axis"]:
            if name == "of_lists" and not ids.size:
                continue
            (expected,) = original[name](ids=tf.constant(ids)).values()
            (got,) = client.predict({"ids": ids}, signature_name=name).values()
            assert got.shape == expected.shape, name
            assert np.asarray(got).tobytes() == expected.numpy().tobytes(), name
    for name in tables.GATHERED:
        ids = np.int64([1, tables.ROWS])
        with pytest.raises(tf.errors.InvalidArgumentError) as expected_error:
            original[name](ids=tf.constant(ids))
        with pytest.raises(grpc.RpcError) as error:
            client.predict({"ids": ids}, signature_name=name)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        if name == "of_lists":  # TensorFlow's sum by segment says it otherwise
            said = "indices[2] = 50 is not in [0, 50)"
        else:
            (said,) = re.findall(r"indices\[.*\) ?", expected_error.value.message)
        assert said.strip() in error.value.details()


def test_the_log_and_the_status_page_say_what_is_mapped_and_why_not(stubs: Stubs):
    (version,) = versions_of(stubs)
    assert all(note in stubs.server.log() for note in version["notes"])
    reasons = {one["name"]: one["in_memory_because"] for one in version["tables"]["tables"]}
    for name, op in {**tables.OTHERWISE, "axis": "GatherV2"}.items():
        reads = f'signature "{name}" reads it by '
        assert reasons[name].startswith(reads)
        assert op in reasons[name]
        assert f'table "{name}" is in memory, not mapped: {reasons[name]}' in version["notes"]
    assert version["tables"]["mapped_bytes"] == MAPPED_BYTES

    def all_are_checked() -> bool:
        labels = {"model_name": stubs.model, "version": "1"}
        metrics = Metrics(stubs.server)
        kinds = {
            kind: metrics.value(":colcast:table_bytes", kind=kind, **labels)
            for kind in ("mapped", "resident", "checked")
        }
        assert kinds["mapped"] == version["tables"]["mapped_bytes"]
        return kinds["checked"] == kinds["resident"] == kinds["mapped"]

    wait_until(all_are_checked)


def test_without_mapping_no_file_is_mapped_and_deltas_are_named(
    base_path: Path, serve: Callable[..., Stubs]
):
    publish(base_path)
    server = serve(base_path, *NOTHING_KEPT).server
    assert "variables.data" not in Path(f"/proc/{server.pid}/maps").read_text()
    said = f"with --map_tables=off, tables take no deltas: {base_path}/1/deltas/delta-000001"
    assert said in server.log()


def damage_by_cutting(data: Path) -> None:
    os.truncate(data, data.stat().st_size // 2)


def damage_by_writing(data: Path) -> None:
    key = "tables/by_handle/.ATTRIBUTES/VARIABLE_VALUE"
    table = tf.train.load_checkpoint(str(data.parent / "variables")).get_tensor(key).tobytes()
    with data.open("r+b") as file:
        file.seek(data.read_bytes().index(table))
        file.write(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("damage", [damage_by_cutting, damage_by_writing])
def test_a_file_that_changes_refuses_answers_until_another_version_comes(
    damage: Callable[[Path], None],
    base_path: Path,
    saved: Path,
    stubs: Stubs,
    ask: Callable[..., np.ndarray],
):
    before = ask().tobytes()
    damage(base_path / "1" / DATA)
    error = refusal(ask)
    assert error is not None
    assert error.code() == grpc.StatusCode.DATA_LOSS
    assert DATA in error.details()

    def is_reported() -> bool:
        (version,) = versions_of(stubs)
        said = version["error_code"] == "DATA_LOSS" and DATA in version["error"]
        return said and version["state"] == "END"

    wait_until(is_reported)
    assert stubs.states()[1][0] == "END"
    shutil.copytree(saved, base_path / "tmp")
    (base_path / "tmp").rename(base_path / "2")
    wait_until(lambda: refusal(ask) is None)
    assert ask().tobytes() == before


def test_a_touched_file_serves_again_once_its_bytes_were_found_unchanged(
    base_path: Path, stubs: Stubs, ask: Callable[..., np.ndarray]
):
    before = ask().tobytes()
    (base_path / "1" / DATA).touch()
    assert is_damaged(ask), "its bytes may have changed"
    wait_until(lambda: stubs.states()[1][0] == "END")
    wait_until(lambda: stubs.states()[1][0] == "AVAILABLE")
    assert ask().tobytes() == before


@pytest.mark.parametrize("break_file", [damage_by_cutting, os.remove])
def test_a_version_with_a_damaged_or_missing_file_is_not_loaded_and_the_old_one_serves(
    break_file: Callable[[Path], None],
    base_path: Path,
    saved: Path,
    stubs: Stubs,
    ask: Callable[..., np.ndarray],
):
    before = ask().tobytes()
    shutil.copytree(saved, base_path / "tmp")
    break_file(base_path / "tmp" / DATA)
    (base_path / "tmp").rename(base_path / "2")
    said = f"version 2 cannot be loaded from {base_path}"
    wait_until(lambda: said in stubs.server.log())
    assert ask().tobytes() == before


def served(stubs: Stubs) -> dict[str, Any]:
    """What the status page says about the tables of the only version."""
    (version,) = versions_of(stubs)
    return dict(version["tables"])


def applied(stubs: Stubs, number: int) -> None:
    wait_until(lambda: served(stubs)["deltas"] == number)


ROWS = np.arange(14, dtype=np.float32).reshape(2, 7)  # the new values of rows 3 and 49


def publish(
    base_path: Path, table: str = "by_handle", shape: Any = (7,), dtype: Any = "f4"
) -> Path:
    rows = ROWS[:, : np.prod(shape)].reshape(2, *shape).astype(dtype)
    return build_row_delta(
        base_path, pd.DataFrame({"id": [3, 49], "vector": rows.tolist()}), table=table
    )


@pytest.mark.parametrize(
    ("table", "shape"), [*((name, (7,)) for name in tables.GATHERED[:6]), ("of_halves", (3, 2))]
)
def test_rows_of_a_delta_take_the_place_of_the_files(
    table: str, shape: Any, base_path: Path, stubs: Stubs, ask: Callable[..., np.ndarray]
):
    before = ask(table).reshape(len(IDS), -1)
    publish(base_path, table, shape)
    applied(stubs, 1)
    after = ask(table).reshape(len(IDS), -1)
    assert (after[[0, 2, 3]] == ROWS[[0, 1, 0], : np.prod(shape)]).all()
    assert (after[[1, 4]] == before[[1, 4]]).all()


def test_a_delta_is_refused_by_name_and_the_next_one_in_its_place_is_applied(
    base_path: Path, stubs: Stubs, ask: Callable[..., np.ndarray]
):
    before = ask("whole").tobytes()
    path = publish(base_path, "whole")
    wait_until(lambda: served(stubs)["delta_error"])
    error = served(stubs)["delta_error"]
    assert str(path) in error
    assert 'table "whole" is not mapped: signature "whole" reads it by MatMul' in error
    assert error in stubs.server.log()
    labels = {"model_name": stubs.model, "version": "1"}
    assert Metrics(stubs.server).value(":colcast:table_delta_refused", **labels) == 1
    assert ask("whole").tobytes() == before
    path.unlink()
    publish(base_path)
    applied(stubs, 1)
    assert served(stubs)["delta_error"] == ""
    assert Metrics(stubs.server).value(":colcast:table_deltas", **labels) == 1


def test_a_new_version_applies_its_own_deltas_and_none_of_the_old_ones(
    base_path: Path, saved: Path, stubs: Stubs, ask: Callable[..., np.ndarray]
):
    before = ask().tobytes()
    publish(base_path)
    applied(stubs, 1)
    changed = ask().tobytes()
    tables.save(base_path / "tmp", seed=next(SEEDS))
    shutil.copytree(base_path / "1/deltas", base_path / "tmp/deltas")  # made for version 1
    (base_path / "tmp").rename(base_path / "2")
    wait_until(lambda: "made for the checkpoint" in stubs.server.log())
    shutil.copytree(saved, base_path / "tmp")
    (base_path / "tmp").rename(base_path / "3")
    wait_until(lambda: ask().tobytes() == before)
    shutil.copytree(base_path / "1", base_path / "tmp")
    (base_path / "tmp").rename(base_path / "4")  # applied before the version serves
    wait_until(lambda: ask().tobytes() == changed)
    rest = stubs.server.rest_target
    ran = CliRunner().invoke(command, ["inspect", str(base_path), "--server", rest, "--json"])
    why = {one["name"]: one["in_memory_because"] for one in json.loads(ran.output)["tables"]}
    assert why["by_handle"] == ""
    assert why["whole"].startswith('signature "whole" reads it by MatMul')


def versions_of(stubs: Stubs) -> list[dict[str, Any]]:
    """The versions of the model on the status page."""
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    return list(model["versions"])
