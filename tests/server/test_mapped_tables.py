"""Mapped tables: scores are bit-identical, and none comes from a changed file."""

import os
import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf

from ..models import tables
from ..waiting import wait_until
from .metrics_page import Metrics, status
from .servers import AS_SAVED, NOTHING_KEPT, Stubs

DATA = "variables/variables.data-00000-of-00001"
IDS = np.int64([3, 0, 49, 3, 17])
SEEDS = count(1)
MAPPED_BYTES = 4 * 50 * 7 * 4 + 50 * 6 * 2 + 1  # the last byte is the table `aa`


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
    (base_path / "1/deltas").mkdir()
    for number in (1, 2):
        (base_path / f"1/deltas/delta-00000{number}.safetensors").touch()
    server = serve(base_path, *NOTHING_KEPT).server
    assert "variables.data" not in Path(f"/proc/{server.pid}/maps").read_text()
    assert (
        f"with --map_tables=off, tables take no deltas: {base_path}/1/deltas/"
        "delta-000001.safetensors to delta-000002.safetensors are not applied"
    ) in server.log()


def damage_by_cutting(data: Path) -> None:
    os.truncate(data, data.stat().st_size // 2)


def damage_by_writing(data: Path) -> None:
    key = "tables/by_handle/.ATTRIBUTES/VARIABLE_VALUE"
    table = tf.train.load_checkpoint(str(data.parent / "variables")).get_tensor(key).tobytes()
    with data.open("r+b") as file:
        file.seek(data.read_bytes().index(table))
        file.write(b"\xff\xff\xff\xff")


def damage_with_the_old_time(data: Path) -> None:
    before = data.stat()
    damage_by_writing(data)
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("damage", [damage_by_cutting, damage_by_writing, damage_with_the_old_time])
def test_a_file_that_changes_refuses_answers_until_another_version_comes(
    damage: Callable[[Path], None],
    base_path: Path,
    saved: Path,
    stubs: Stubs,
    ask: Callable[..., np.ndarray],
):
    before = ask().tobytes()
    damage(base_path / "1" / DATA)
    if damage is damage_with_the_old_time:
        wait_until(lambda: is_damaged(ask))
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


def test_a_file_that_is_replaced_or_deleted_is_served_as_it_was(
    base_path: Path, ask: Callable[..., np.ndarray]
):
    before = ask().tobytes()
    data = base_path / "1" / DATA
    data.with_suffix(".new").write_bytes(b"something else")
    data.with_suffix(".new").rename(data)
    assert ask().tobytes() == before
    data.unlink()
    assert ask().tobytes() == before


def test_bytes_that_were_wrong_before_the_load_are_found_after_it(
    base_path: Path, serve: Callable[..., Stubs]
):
    damage_by_writing(base_path / "1" / DATA)
    stubs = serve(base_path)
    wait_until(lambda: is_damaged(lambda: stubs.predict({"ids": IDS}, signature_name="by_handle")))
    wait_until(lambda: "table " in stubs.server.log() and DATA in stubs.server.log())


def make_a_pipe(data: Path) -> None:
    data.unlink()
    os.mkfifo(data)


@pytest.mark.parametrize("break_file", [damage_by_cutting, make_a_pipe, os.remove])
def test_a_version_whose_file_is_no_table_is_not_loaded_and_the_old_one_serves(
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


def versions_of(stubs: Stubs) -> list[dict[str, Any]]:
    """The versions of the model on the status page."""
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    return list(model["versions"])
