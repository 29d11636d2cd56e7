"""A model whose lookups run as one op is bit-identical to the unchanged model."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import export_saved_model
from colcast.loadtest.tune import graphs as tune_graphs
from colcast.zoo import wide
from colcast.zoo.columnar import columnar

from .metrics_page import status
from .servers import AS_SAVED, Stubs

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
) -> Path:
    """Writes a choice for the model on this machine to the folder of --graph_choices."""
    log = log_of(serve_fast(base_path))
    found = _KEY.search(log)
    assert found, log
    file = folder / f"{base_path.name}.json"
    choice = {"key": found[1], "rewrites": rewrites, "signatures": ["serving_default"]}
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


def test_a_column_of_too_many_rows_is_the_same_error(modes):
    inputs = columns(3, seed=0) | {"item_000": np.array([1, 2])}
    said = []
    for server in modes:
        with pytest.raises(grpc.RpcError) as error:
            server.predict(inputs, signature_name="columnar_late")
        said.append((error.value.code(), error.value.details().replace(server.model, "")))
    assert said[0] == said[1]


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


def test_fast_is_exact_without_a_choice_that_fits(base_path: Path, serve_fast, choices: Path):
    """A choice does not fit if any component of its key differs."""
    choice = write_choice(choices, serve_fast, base_path, ["bfloat16 products"])
    changed = json.loads(choice.read_text())
    changed["key"] = changed["key"].replace("TensorFlow 2", "TensorFlow 1")
    choice.write_text(json.dumps(changed))
    log = log_of(serve_fast(base_path))
    assert "no graph choice applied, graphs are exact: " in log
    assert log.count("graph choice") == 1
    assert 'signature "columnar": 14 lookups run as one op' in log


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
