"""The int8 tables that an export wrote are mapped, and their rows are close to the float32 rows."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.items import build_row_delta
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2

from ..models.saving import save_graph, save_version
from ..waiting import wait_until
from .metrics_page import status
from .servers import Stubs
from .test_graph_optimization import _KEY

v1 = tf.compat.v1
ROWS, WIDTH = 20_000, 40
NAMES = ("user", "item")
ROW_BYTES = WIDTH + 2


def hostile_rows(seed: int) -> np.ndarray:
    """Random rows, among them NaN, infinity, ties, zeros, a large value, and denormals."""
    rows = np.random.default_rng(seed).normal(size=(ROWS, WIDTH)).astype(np.float32)
    rows[1, 4], rows[2, 0], rows[3] = np.nan, -np.inf, 0
    rows[4, 9], rows[5] = 1e6, 1e-40
    rows[6] = np.arange(WIDTH) - 0.5
    rows[7] = 3.3e38
    rows[8:64] *= np.float32(2.0) ** np.arange(-28, 28, dtype=np.float32)[:, None]
    rows[65], rows[66] = -np.nextafter(np.float32(np.inf), np.float32(0)), -0.0
    rows[67] = np.arange(WIDTH, dtype=np.uint32).view(np.float32)
    rows[68] = (0x7F800001 + 0x80000000 * (np.arange(WIDTH) % 2)).astype(np.uint32).view(np.float32)
    return rows


def save(folder: Path, seed: int = 1) -> None:
    values = {name: hostile_rows(seed + len(name)) for name in NAMES}
    with tf.Graph().as_default(), v1.Session() as session:
        ids = {name: v1.placeholder(tf.int64, [None, None], name) for name in NAMES}
        rows = []
        for name, column in ids.items():
            start = v1.constant_initializer(values[name])
            shape = [ROWS, WIDTH]
            table = v1.get_variable(f"{name}_table", shape, initializer=start, use_resource=True)
            rows.append(tf.reduce_sum(tf.gather(table, column), 1))
        outputs = {"rows": tf.concat(rows, 1)}
        signature = v1.saved_model.predict_signature_def(ids, outputs)
        session.run(v1.global_variables_initializer())
        save_graph(folder, session, {"serving_default": signature})


@pytest.fixture(scope="module", name="exported")
def _exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    save(folder / "saved")
    export(folder / "saved", folder / "int8" / "1")
    return folder / "int8"


def export(saved: Path, output: Path) -> None:
    export_saved_model(
        saved, output, user_features=["user"], late=True, tolerance=1e9, table_type="int8"
    )


@pytest.fixture(name="base_path")
def _base_path(exported: Path, tmp_path: Path) -> Path:
    shutil.copytree(exported, tmp_path / "ranker")
    return tmp_path / "ranker"


@pytest.fixture(name="serving")
def _serving(tmp_path: Path, monitoring: list[str]) -> Callable[..., Any]:
    choice = tmp_path / "graphs.json"
    # Stages are left out: one that has a single lookup has nothing to merge, so it reads float32.
    fast = [
        *("--graph_optimization=fast", f"--graph_choices={choice}"),
        "--unserved_signatures=columnar_user,columnar_item",
    ]

    @contextmanager
    def serving(base_path: Path, *flags: str) -> Iterator[ServerProcess]:
        own = [*fast, "--map_tables_min_bytes=1", *monitoring, *flags]
        if not choice.exists():
            with ServerProcess("ranker", base_path, own) as server:
                found = _KEY.search(server.log())
                assert found
            saved = (base_path / "1" / "saved_model.pb").read_bytes()
            (graph,) = saved_model_pb2.SavedModel.FromString(saved).meta_graphs
            made = {"rewrites": ["int8 tables"], "signatures": [*graph.signature_def]}
            choice.write_text(json.dumps({"key": found[1]} | made))
        with ServerProcess("ranker", base_path, own) as server:
            yield server

    return serving


def answer(server: ServerProcess, ids: Any = None) -> np.ndarray:
    if ids is None:
        ids = np.concatenate([np.arange(128), np.arange(ROWS - 100, ROWS)])
    lists = {name: np.stack([ids, ids[::-1]], 1) for name in NAMES}
    rows = []
    for length in (1, 2):
        inputs = {name: one[:, :length] for name, one in lists.items()}
        found = Stubs(server.target).predict(inputs, signature_name="serving_default")
        rows.append(np.asarray(found["rows"]))
    return np.concatenate(rows)


def test_rows_are_read_from_the_files_instead_of_float32(base_path: Path, serving: Any):
    with serving(base_path) as server:
        said = f"GB of tables in int8 mapped from {base_path}/1/int8/tables.index"
        assert said in server.log()
        assert "2 tables in int8 alone" in server.log()
        (version,) = status(server)["models"][0]["versions"]
        size = 2 * ROWS * ROW_BYTES
        assert version["tables"]["mapped_bytes"] == size  # the float32 tables are not mapped
        wait_until(lambda: tables_of(server)["checked_bytes"] == size)


def test_rows_in_int8_are_close_to_the_original_models(base_path: Path, serving: Any):
    with serving(base_path) as server:
        mapped = answer(server)
    with ServerProcess("ranker", base_path) as server:
        exact = answer(server)
    assert mapped.tobytes() != exact.tobytes()
    alone = len(exact) // 2  # the first half has lists of one id
    for table in (slice(WIDTH), slice(WIDTH, None)):
        got, rows = mapped[:alone, table], exact[:alone, table]
        largest = np.abs(rows).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            is_close = np.abs(got - rows) <= largest / 251 + 1e-37  # TensorFlow flushes denormals
        assert (is_close | (got == rows) | np.isnan(rows)).all()


def tables_of(server: ServerProcess) -> Any:
    return status(server)["models"][0]["versions"][0]["tables"]


def cut(version: Path) -> None:
    os.truncate(largest_of(version), largest_of(version).stat().st_size - 1)


def largest_of(version: Path) -> Path:
    return max((version / "int8").glob("tables.data*"), key=lambda file: file.stat().st_size)


def flip(version: Path) -> None:
    content = bytearray(largest_of(version).read_bytes())
    content[len(content) // 2] ^= 1
    largest_of(version).write_bytes(content)


def make_a_pipe(version: Path) -> None:
    file = largest_of(version)
    file.unlink()
    os.mkfifo(file)


def take_of_another_version(version: Path) -> None:
    save(version.parent / "other", seed=5)
    export(version.parent / "other", version.parent / "exported")
    shutil.rmtree(version / "int8")
    (version.parent / "exported" / "int8").rename(version / "int8")
    shutil.rmtree(version.parent / "exported")
    shutil.rmtree(version.parent / "other")


def remove(version: Path) -> None:
    shutil.rmtree(version / "int8")


@pytest.mark.parametrize("damage", [cut, flip, make_a_pipe, remove, take_of_another_version])
def test_files_that_may_not_be_used_are_named_and_tables_stay_in_float32(
    damage: Callable[[Path], None], base_path: Path, serving: Any
):
    damage(base_path / "1")
    with serving(base_path) as server:
        said = f"tables stay in float32: {base_path}/1/int8/tables.index: "
        assert said in server.log()
        (version,) = status(server)["models"][0]["versions"]
        assert any(note.startswith(said) for note in version["notes"])
        got = answer(server)
    with ServerProcess("ranker", base_path) as server:
        assert answer(server).tobytes() == got.tobytes()


def test_rows_of_a_delta_are_read_in_float32(base_path: Path, serving: Any):
    ids, at = np.arange(100, 200), 20
    with serving(base_path) as server:
        before = answer(server, ids)
        row = np.linspace(-1, 1, WIDTH, dtype=np.float32)
        frame = pd.DataFrame({"id": [ids[at]], "vector": [row.tolist()]})
        build_row_delta(base_path, frame, table="user_table")
        wait_until(lambda: tables_of(server)["deltas"] == 1)
        after = answer(server, ids)
    assert (after[at, :WIDTH] == row).all()
    # These rows contain the id: one alone, two in lists.
    changed = [at, 100 + at, 199 - at]
    kept = np.delete(np.arange(200), changed)
    assert after[kept].tobytes() == before[kept].tobytes()
    assert (after[changed, :WIDTH] != before[changed, :WIDTH]).any(axis=1).all()
    assert after[:, WIDTH:].tobytes() == before[:, WIDTH:].tobytes()


def test_a_model_without_large_tables_is_refused(tmp_path: Path):
    module = tf.Module()
    module.table = tf.Variable(tf.zeros([8, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name) for name in NAMES])
    def score(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": tf.reduce_sum(tf.gather(module.table, user + item), 1)}

    save_version(tmp_path / "saved", module, score)
    with pytest.raises(ExportError, match="looks up rows in no float32 table of 1 MiB or more"):
        export(tmp_path / "saved", tmp_path / "exported")
