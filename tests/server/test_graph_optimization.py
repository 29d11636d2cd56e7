"""Lookups run as one op bit for bit; products in bfloat16 and tables in int8 if they are chosen."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError, export_saved_model
from colcast.items import build_row_delta
from colcast.loadtest.tune import graphs as tune_graphs
from colcast.zoo import wide
from colcast.zoo.columnar import columnar
from tensorflow.core.protobuf import saved_model_pb2

from ..models.saving import save_graph, save_version
from ..waiting import wait_until
from .metrics_page import status
from .servers import AS_SAVED, Stubs

v1 = tf.compat.v1
_KEY = re.compile(r'this is "([^"]+)"')


def has_bfloat16() -> bool:
    """Whether the CPU has the instructions that "bfloat16 products" need."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text()


def log_of(stubs: Stubs) -> str:
    """The log's lines about the model."""
    lines = stubs.server.log().splitlines()
    return "\n".join(line for line in lines if f'"{stubs.model}"' in line)


def write_choice(
    folder: Path,
    serve_fast: Callable[[Path], Stubs],
    base_path: Path,
    rewrites: Sequence[str],
    signatures: Sequence[str] = ("serving_default",),
) -> Path:
    """Writes a choice for the model on this machine to the folder of --graph_choices."""
    log = log_of(serve_fast(base_path))
    found = _KEY.search(log)
    assert found, log
    file = folder / f"{base_path.name}.json"
    choice = {"key": found[1], "rewrites": rewrites, "signatures": [*signatures]}
    file.write_text(json.dumps(choice))
    return file


SMALL = wide.Wide(name="small", user_features=12, item_features=9, buckets=50, hidden=(8,))


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return columnar(wide.ensure(SMALL, tmp_path_factory.mktemp("zoo")), late=True)


@pytest.fixture(scope="module")
def saved(base_path: Path) -> dict[Path, int]:
    """The model's files, read before it is served."""
    return files(base_path)


@pytest.fixture(scope="module")
def modes(base_path: Path, saved: dict[Path, int], serve: Any) -> list[Stubs]:
    """The model served as saved, and with --graph_optimization's default, exact."""
    return [serve(base_path, *AS_SAVED), serve(base_path)]


def columns(candidates: int, seed: int) -> dict[str, np.ndarray]:
    user, items = next(islice(wide.requests(SMALL, candidates, seed), 1))
    values = {name: [value] for name, value in user.items()}
    values |= {name: [item[name] for item in items] for name in items[0]}
    return {
        name: np.array(values[name], object if dtype == "string" else dtype.as_numpy_dtype)
        for name, dtype in SMALL.dtypes.items()
    }


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
@pytest.mark.parametrize("candidates", [1, 2, 33, 70])
def test_scores_have_the_same_bits(modes, signature: str, candidates: int):
    inputs = columns(candidates, seed=candidates)
    off, exact = (one.predict(inputs, signature_name=signature)["score"] for one in modes)
    assert off.tobytes() == exact.tobytes()
    assert len(set(off.tolist())) == candidates


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_rewrites_are_reported_and_nothing_is_written(base_path, saved, modes):
    _, stubs = modes
    assert 'signature "columnar": 14 lookups run as one op' in log_of(stubs)
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    signatures = model["versions"][0]["signatures"]
    graphs = {one["name"]: one["graphs"] for one in signatures}
    assert graphs["columnar"] == ["14 lookups run as one op"]
    assert graphs["serving_default"] == []
    assert files(base_path) == saved


class Siamese(tf.Module):
    """Scores by the distance between two vectors of one tower, which are nearly equal."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        first, last = random.normal(size=(64, 256)) / 8, random.normal(size=(256, 64)) / 20
        self.first, self.last = (tf.Variable(kernel.astype("f")) for kernel in (first, last))
        self.bias = tf.Variable(2 * tf.ones([256]))

    def tower(self, features: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(0.05 * features @ self.first + self.bias) @ self.last

    @tf.function(input_signature=[tf.TensorSpec([None, 64], name=n) for n in ("user", "item")])
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        apart = self.tower(user) - self.tower(item)
        return {"score": -tf.reduce_sum(apart**2, 1)}


@pytest.fixture
def siamese(tmp_path: Path) -> tuple[Siamese, Path]:
    model, base_path = Siamese(), tmp_path / "siamese"
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.score)
    export_saved_model(
        tmp_path / "model", base_path / "1", user_features=["user"], late=True, exact="always"
    )
    return model, base_path


def test_scores_that_rounding_moves_too_far_are_not_tuned(siamese, tmp_path: Path, capsys):
    """Products in bfloat16 are precise enough for the vectors, but not for their distance."""
    _, base_path = siamese
    assert main(["tune", "--graphs", "--model=siamese", f"--model-base-path={base_path}",
                 "--distinct=8", f"--output={tmp_path / 'tuned'}"]) == 1  # fmt: skip
    printed = capsys.readouterr().out
    if has_bfloat16():
        assert "bfloat16 products: scores differ too much: differences up to" in printed
    assert not (tmp_path / "tuned" / "graphs.json").exists()


@pytest.mark.skipif(not has_bfloat16(), reason="the CPU has no AVX512-BF16")
def test_a_tuned_choice_is_applied_to_every_signature(
    tmp_path: Path, serve, serve_fast, choices: Path, capsys
):
    sizes = wide.Wide(name="tuned", user_features=12, item_features=9, buckets=50)
    base_path = columnar(wide.ensure(sizes, tmp_path), late=True)
    # Ignores the measured gain, which a busy machine may hide.
    with mock.patch.object(tune_graphs.Proof, "judge", return_value=None):
        assert main(["tune", "--graphs", "--model=tuned", f"--model-base-path={base_path}",
                     "--distinct=4", f"--output={tmp_path}"]) == 0  # fmt: skip
    choice = tmp_path / "graphs.json"
    assert f"--graph_optimization=fast --graph_choices={choice}" in " ".join(
        capsys.readouterr().out.split()
    )
    proof = json.loads(choice.read_text())["proof"]
    assert 0 < proof["difference"] < 0.005
    assert set(proof["cpu"]) == {"example", "repeated", "columnar", "late"}
    inputs = columns(33, seed=1)
    shutil.copy(choice, choices / "tuned.json")
    exact, fast = serve(base_path), serve_fast(base_path)
    assert f"graph choice applied: {choices / 'tuned.json'}" in log_of(fast)
    for signature in ("columnar", "columnar_late", "columnar_user", "columnar_item"):
        assert re.search(f'"{signature}": .*products in bfloat16', log_of(fast)), signature
    one, other = (
        stubs.predict(inputs, signature_name="columnar_late")["score"] for stubs in (exact, fast)
    )
    assert one.tobytes() != other.tobytes()
    np.testing.assert_allclose(other, one, atol=0.005)


# Tables in int8 that an export wrote.

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


def save_tables(folder: Path) -> None:
    values = {name: hostile_rows(1 + len(name)) for name in NAMES}
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


def export_int8(saved: Path, output: Path) -> None:
    export_saved_model(
        saved, output, user_features=["user"], late=True, tolerance=1e9, table_type="int8"
    )


@pytest.fixture(scope="module", name="exported")
def _exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of a model whose export wrote tables in int8."""
    folder = tmp_path_factory.mktemp("tables")
    save_tables(folder / "saved")
    export_int8(folder / "saved", folder / "int8" / "1")
    return folder / "int8"


@pytest.fixture(name="tables_path")
def _tables_path(exported: Path, tmp_path: Path) -> Path:
    shutil.copytree(exported, tmp_path / "ranker")
    return tmp_path / "ranker"


@pytest.fixture(scope="module", name="serve_int8")
def _serve_int8(serve: Any, exported: Path, choices: Path) -> Callable[[Path], Stubs]:
    """A function that serves a model with the choice to read int8 tables."""
    # Stages are left out: one that has a single lookup has nothing to merge, so it reads float32.
    flags = [
        *("--graph_optimization=fast", f"--graph_choices={choices}", "--map_tables_min_bytes=1"),
        "--unserved_signatures=columnar_user,columnar_item",
    ]
    saved = (exported / "1" / "saved_model.pb").read_bytes()
    (graph,) = saved_model_pb2.SavedModel.FromString(saved).meta_graphs
    serve_int8 = lambda base_path: serve(base_path, *flags)  # noqa: E731
    write_choice(choices, serve_int8, exported, ["int8 tables"], [*graph.signature_def])
    return serve_int8


def answer(stubs: Stubs, ids: Any = None) -> np.ndarray:
    """The rows of lists of one id, and then of lists of two."""
    if ids is None:
        ids = np.concatenate([np.arange(128), np.arange(ROWS - 100, ROWS)])
    lists = {name: np.stack([ids, ids[::-1]], 1) for name in NAMES}
    rows = []
    for length in (1, 2):
        found = stubs.predict({name: one[:, :length] for name, one in lists.items()})
        rows.append(np.asarray(found["rows"]))
    return np.concatenate(rows)


def version_of(stubs: Stubs) -> Any:
    """The model's only version on the status page."""
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    return model["versions"][0]


def test_rows_in_int8_are_read_from_the_files_and_close_to_the_original_models(
    exported: Path, serve: Any, serve_int8: Any
):
    int8 = serve_int8(exported)
    assert f"GB of tables in int8 mapped from {exported}/1/int8/tables.index" in log_of(int8)
    assert "2 tables in int8 alone" in log_of(int8)
    size = 2 * ROWS * ROW_BYTES
    assert version_of(int8)["tables"]["mapped_bytes"] == size  # the float32 tables are not mapped
    wait_until(lambda: version_of(int8)["tables"]["checked_bytes"] == size)
    mapped, exact = answer(int8), answer(serve(exported))
    assert mapped.tobytes() != exact.tobytes()
    alone = len(exact) // 2  # the first half has lists of one id
    for table in (slice(WIDTH), slice(WIDTH, None)):
        got, rows = mapped[:alone, table], exact[:alone, table]
        largest = np.abs(rows).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            is_close = np.abs(got - rows) <= largest / 251 + 1e-37  # TensorFlow flushes denormals
        assert (is_close | (got == rows) | np.isnan(rows)).all()


def test_rows_of_a_delta_are_read_in_float32(tables_path: Path, serve_int8: Any):
    ids, at = np.arange(100, 200), 20
    stubs = serve_int8(tables_path)
    before = answer(stubs, ids)
    row = np.linspace(-1, 1, WIDTH, dtype=np.float32)
    frame = pd.DataFrame({"id": [ids[at]], "vector": [row.tolist()]})
    build_row_delta(tables_path, frame, table="user_table")
    wait_until(lambda: version_of(stubs)["tables"]["deltas"] == 1)
    after = answer(stubs, ids)
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
        export_int8(tmp_path / "saved", tmp_path / "exported")
