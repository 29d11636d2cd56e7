"""Tables that are kept in int8 alone: scores stay close, and what was given up says so."""

from collections.abc import Sequence
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from ..models.saving import save_graph
from .graph_choices import write_choice

v1 = tf.compat.v1

ROWS, WIDTH, LIST = 20_000, 64, 12
# Sums of random numbers that cancel out differ by more than those of trained models.
TOLERANCE = 0.05
ALONE = "2 tables in int8 alone: 0.0102 GB given back"


def save(directory: Path, *, total: bool) -> None:
    """Scores of lists of ids, which one op sums in far less time.

    Args:
      directory: of the version.
      total: whether to add a signature that reads a whole table.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        ids = {name: v1.placeholder(tf.int64, [None, None], name) for name in ("user", "item")}
        rows = []
        for name, column in ids.items():
            spread = v1.random_uniform_initializer(-1, 1, seed=len(name))
            table = v1.get_variable(name, [ROWS, WIDTH], initializer=spread, use_resource=True)
            of_list = tf.gather(table, tf.math.floormod(column, ROWS))
            rows.append(tf.reduce_sum(of_list, 1))
        weights = v1.get_variable(
            "weights",
            [2 * WIDTH, 1],
            initializer=v1.random_uniform_initializer(seed=1),
            use_resource=True,
        )
        score = tf.squeeze(tf.matmul(tf.concat(rows, 1), weights), 1)
        signatures = {
            "serving_default": v1.saved_model.predict_signature_def(ids, {"score": score})
        }
        if total:
            sums = tf.reduce_sum(table, 1)[: tf.shape(ids["item"])[0]]
            signatures["total"] = v1.saved_model.predict_signature_def(
                {"item": ids["item"]}, {"total": sums}
            )
        session.run(v1.global_variables_initializer())
        save_graph(directory, session, signatures)


def columns(candidates: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(candidates)
    return {name: random.integers(0, 1 << 40, (candidates, LIST)) for name in ("user", "item")}


def fast(base_path: Path, signatures: Sequence[str], flags: Sequence[str] = ()) -> list[str]:
    file = base_path.parent / "choice.json"
    choice = write_choice(file, base_path, ["int8 tables"], signatures, flags)
    return ["--graph_optimization=fast", f"--graph_choices={choice}", *flags]


def test_scores_stay_close_and_float32_is_given_back(tmp_path: Path, connect):
    base_path = tmp_path / "ranker"
    save(base_path / "1", total=False)
    with ServerProcess("ranker", base_path, ["--graph_optimization=off"]) as off:
        expected = {n: connect(off.target).predict(columns(n))["score"] for n in (1, 7, 300)}
    with ServerProcess("ranker", base_path, fast(base_path, ["serving_default"])) as server:
        assert ALONE in server.log()
        for candidates, scores in expected.items():
            got = connect(server.target).predict(columns(candidates))["score"]
            np.testing.assert_allclose(got, scores, atol=TOLERANCE * np.abs(scores).max())
            assert got.tobytes() != scores.tobytes()


def test_a_table_that_a_signature_reads_otherwise_is_in_int8_only_without_it(
    tmp_path: Path, connect
):
    base_path = tmp_path / "ranker"
    save(base_path / "1", total=True)
    items = {"item": np.int64([[1], [2], [3]])}
    both = ["serving_default", "total"]
    with ServerProcess("ranker", base_path, fast(base_path, both)) as server:
        assert "1 table in int8 alone" in server.log()
        assert len(connect(server.target).predict(items, signature_name="total")["total"]) == 3
    alone = fast(base_path, both, ["--unserved_signatures=total"])
    with ServerProcess("ranker", base_path, alone) as server:
        assert ALONE in server.log()
        with pytest.raises(grpc.RpcError) as error:
            connect(server.target).predict(items, signature_name="total")
        assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "--unserved_signatures" in error.value.details()
        assert len(connect(server.target).predict(columns(3))["score"]) == 3
