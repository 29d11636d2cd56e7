"""A model whose lookups run as one op answers with the bits of one that runs as it was saved."""

import json
import re
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
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.columnar import columnar

from .conftest import Stubs
from .graph_choices import has_bfloat16, write_choice
from .metrics_page import status

SMALL = wide.Wide(name="small", user_features=12, item_features=9, buckets=50, hidden=(8,))
MODES = "--graph_optimization=off", "--graph_optimization=exact"


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return columnar(wide.ensure(SMALL, tmp_path_factory.mktemp("zoo")), late=True)


@pytest.fixture(scope="module")
def saved(base_path: Path) -> dict[Path, int]:
    """The model's files before it is served."""
    return files(base_path)


@pytest.fixture(scope="module")
def processes(
    base_path: Path, saved: dict[Path, int], shared: Any, monitoring: list[str]
) -> list[ServerProcess]:
    return [shared("ranker", base_path, *monitoring, mode) for mode in MODES]


@pytest.fixture(scope="module")
def servers(processes: list[ServerProcess]) -> list[Stubs]:
    return [Stubs(server.target) for server in processes]


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
def test_scores_have_the_same_bits(servers, signature: str, candidates: int):
    inputs = columns(candidates, seed=candidates)
    off, exact = (one.predict(inputs, signature_name=signature)["score"] for one in servers)
    assert off.tobytes() == exact.tobytes()
    assert len(set(off.tolist())) == candidates


def test_a_column_of_too_many_rows_is_the_same_error(servers):
    inputs = columns(3, seed=0) | {"item_000": np.array([1, 2])}
    said = []
    for server in servers:
        with pytest.raises(grpc.RpcError) as error:
            server.predict(inputs, signature_name="columnar_late")
        said.append((error.value.code(), error.value.details()))
    assert said[0] == said[1]


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_what_was_rewritten_is_told_and_nothing_is_written(base_path, saved, processes):
    _, server = processes
    assert 'signature "columnar": 14 lookups run as one op' in server.log()
    signatures = status(server)["models"][0]["versions"][0]["signatures"]
    graphs = {one["name"]: one["graphs"] for one in signatures}
    assert graphs["columnar"] == ["14 lookups run as one op"]
    assert graphs["serving_default"] == []
    assert files(base_path) == saved


def test_fast_is_exact_without_a_choice_that_fits(base_path: Path, tmp_path: Path):
    choice = write_choice(tmp_path / "choices" / "a.json", base_path, ["bfloat16 products"])
    changed = json.loads(choice.read_text())
    changed["key"] = changed["key"].replace("TensorFlow 2", "TensorFlow 1")
    choice.write_text(json.dumps(changed))
    why = f'{choice} is for "{changed["key"]}"'
    flags = ["--graph_optimization=fast", f"--graph_choices={choice}"]
    with ServerProcess("ranker", base_path, flags) as server:
        assert f"no graph choice applied, graphs are exact: {why}" in server.log()
        assert server.log().count("graph choice") == 1
        assert 'signature "columnar": 14 lookups run as one op' in server.log()


class Siamese(tf.Module):
    """Scores by the distance of two vectors of one tower, which are close to each other."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        first, last = random.normal(size=(64, 256)) / 8, random.normal(size=(256, 64)) / 20
        self.first, self.last = (tf.Variable(kernel.astype("f")) for kernel in (first, last))
        self.bias = tf.Variable(2 * tf.ones([256]))

    def tower(self, features: tf.Tensor) -> tf.Tensor:
        """A vector for each row."""
        return tf.nn.relu(0.05 * features @ self.first + self.bias) @ self.last

    @tf.function(input_signature=[tf.TensorSpec([None, 64], name=n) for n in ("user", "item")])
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores."""
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
    """Products in bfloat16 are close enough for vectors, and not for their distance."""
    _, base_path = siamese
    assert main(["tune", "--graphs", "--model=siamese", f"--model-base-path={base_path}",
                 "--distinct=8", f"--output={tmp_path / 'tuned'}"]) == 1  # fmt: skip
    told = capsys.readouterr().out
    if has_bfloat16():
        assert "bfloat16 products: scores are too far apart: differences up to" in told
    assert "int8 tables: the graphs have none" in told
    assert not (tmp_path / "tuned" / "graphs.json").exists()


@pytest.mark.skipif(not has_bfloat16(), reason="the CPU has no AVX512-BF16")
def test_a_tuned_choice_is_applied_to_every_signature(tmp_path: Path, connect, capsys):
    sizes = wide.Wide(name="tuned", user_features=12, item_features=9, buckets=50)
    base_path = columnar(wide.ensure(sizes, tmp_path), late=True)
    # A busy machine may show no gain: the test is of what a choice does.
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
    flags = ["--graph_optimization=fast", f"--graph_choices={tmp_path}"]
    with (
        ServerProcess("ranker", base_path, flags) as fast,
        ServerProcess("ranker", base_path) as exact,
    ):
        assert f"graph choice applied: {choice}" in fast.log()
        for signature in ("columnar", "columnar_late", "columnar_user", "columnar_item"):
            assert re.search(f'"{signature}": .*products in bfloat16', fast.log()), signature
        one, other = (
            connect(server.target).predict(inputs, signature_name="columnar_late")["score"]
            for server in (exact, fast)
        )
        assert one.tobytes() != other.tobytes()
        np.testing.assert_allclose(other, one, atol=0.005)
