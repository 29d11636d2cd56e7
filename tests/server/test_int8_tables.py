"""Tables that are kept in int8 alone: scores stay close, and what was given up says so."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from colcast.server import ServerProcess

from ..models.saving import save_graph
from .graph_choices import write_choice

v1 = tf.compat.v1

ROWS, WIDTH, LIST = 20_000, 64, 12
# Sums of random numbers that cancel out differ by more than those of trained models.
TOLERANCE = 0.05
ALONE = "2 tables in int8 alone: 0.0102 GB given back"


def save(directory: Path) -> None:
    """Scores of lists of ids, which one op sums in far less time."""
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
        session.run(v1.global_variables_initializer())
        save_graph(directory, session, signatures)


def columns(candidates: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(candidates)
    return {name: random.integers(0, 1 << 40, (candidates, LIST)) for name in ("user", "item")}


def test_scores_stay_close_and_float32_is_given_back(tmp_path: Path, connect):
    base_path = tmp_path / "ranker"
    save(base_path / "1")
    model = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    expected = {
        n: model(**{name: tf.constant(ids) for name, ids in columns(n).items()})["score"].numpy()
        for n in (1, 7, 300)
    }
    choice = write_choice(tmp_path / "choice.json", base_path, ["int8 tables"])
    fast = ["--graph_optimization=fast", f"--graph_choices={choice}"]
    with ServerProcess("ranker", base_path, fast) as server:
        assert ALONE in server.log()
        for candidates, scores in expected.items():
            got = connect(server.target).predict(columns(candidates))["score"]
            np.testing.assert_allclose(got, scores, atol=TOLERANCE * np.abs(scores).max())
            assert got.tobytes() != scores.tobytes()
