"""A model whose lookups run as one op answers with the bits of one that runs as it was saved."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.columnar import columnar

from .metrics_page import status

SMALL = wide.Wide(name="small", user_features=12, item_features=9, buckets=50, hidden=(8,))
# What is exact is used without being measured: it could lose on a busy machine.
MODES = ["--graph_optimization=off"], ["--graph_optimization=exact", "--graph_measuring_ms=0"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, connect) -> Iterator[list[Any]]:
    base_path = columnar(wide.ensure(SMALL, tmp_path_factory.mktemp("zoo")), late=True)
    off, exact = (ServerProcess("ranker", base_path, mode) for mode in MODES)
    with off, exact:
        yield [connect(server.target) for server in (off, exact)]


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


def test_what_was_chosen_is_kept_beside_the_model_and_shown(tmp_path: Path, monitoring: list[str]):
    base_path = columnar(wide.ensure(SMALL, tmp_path), late=False)
    with ServerProcess("ranker", base_path) as server:
        log = server.log()
    assert 'signature "columnar": 14 lookups run as one op' in log
    assert "the same bits in" in log
    (kept,) = (base_path / "1" / "assets.extra").glob("colcast_graphs_*.json")
    assert json.loads(kept.read_text())["signatures"]["columnar"]["why"] in log
    with ServerProcess("ranker", base_path, monitoring) as server:
        assert "found at an earlier load" in server.log()
        signatures = status(server)["models"][0]["versions"][0]["signatures"]
        (graph,) = next(one["graphs"] for one in signatures if one["name"] == "columnar")
        assert "14 lookups run as one op" in graph


class Counting(tf.Module):
    """Looks two ids up, and counts how often it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = tf.Variable(0, dtype=tf.int64)
        self.table = tf.Variable(tf.ones([50, 8]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, n) for n in ("user", "item")])
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        both = tf.concat([tf.gather(self.table, user), tf.gather(self.table, item)], 1)
        runs = self.runs.assign_add(1)
        return {"runs": tf.cast(runs, tf.float32) * tf.reduce_mean(both, 1)}


def test_a_graph_that_changes_something_does_not_run_before_it_is_asked(tmp_path, connect):
    model = Counting()
    tf.saved_model.save(model, str(tmp_path / "1"), signatures=model.score)
    with ServerProcess("ranker", tmp_path) as server:
        inputs = {"user": np.int64([1]), "item": np.int64([2])}
        assert connect(server.target).predict(inputs)["runs"].tolist() == [1.0]


def test_what_was_chosen_may_be_kept_elsewhere(tmp_path: Path):
    base_path = columnar(wide.ensure(SMALL, tmp_path), late=False)
    folder = tmp_path / "choices"
    flags = [f"--graph_choices_directory={folder}"]
    for earlier in (False, True):
        with ServerProcess("ranker", base_path, flags) as server:
            assert ("found at an earlier load" in server.log()) == earlier
    assert len(list(folder.iterdir())) == 1
    assert not list((base_path / "1" / "assets.extra").glob("colcast_graphs_*"))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    base_path = columnar(wide.ensure(SMALL, tmp_path), late=False)
    flags = [f"--graph_choices_directory={tmp_path}/no/such/folder"]
    with ServerProcess("ranker", base_path, flags) as server:
        assert f"what was chosen cannot be kept in {tmp_path}/no/such/folder" in server.log()


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


def test_stages_are_no_further_off_than_scores_may_be(tmp_path: Path, connect):
    """Products in bfloat16 are close enough for vectors, and not for their distance."""
    model, random = Siamese(), np.random.default_rng(2)
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.score)
    export_saved_model(
        tmp_path / "model", tmp_path / "1", user_features=["user"], late=True, exact="always"
    )
    with ServerProcess("ranker", tmp_path, ["--graph_optimization=fast"]) as server:
        stubs = connect(server.target)
        for candidates in (3, 20, 70):
            user, item = (random.normal(size=(n, 64)).astype("f") for n in (2, candidates))
            row_to_user = np.arange(candidates) % 2  # answered by stages
            columns = {"user": user, "item": item, "row_to_user": row_to_user}
            expected = model.score(user[row_to_user], item)["score"].numpy()
            given = stubs.predict(columns, signature_name="columnar_late")["score"]
            np.testing.assert_allclose(given, expected, atol=0.01 * np.abs(expected).max())
