"""tf.Examples read as columns score as those that TensorFlow parses, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from colcast.zoo.examples import serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.papers import PAPERS, ensure
from colcast.zoo.registry import MODELS

TINY = 0.001  # of the papers' tables


def requests_and_model(name: str, folder: Path) -> tuple[list[list[bytes]], Path]:
    """Requests of one user each and one of two, and the model's base path."""
    sizes = [1, 30, 40]
    if name == "movielens":
        train.ensure(train.WORK_DIR)
        base_path, drawn = train.WORK_DIR / "model", MODELS[name].requests(sizes, 0)
    else:
        base_path = ensure(PAPERS[name], TINY, folder)
        drawn = [PAPERS[name].request(size, size, TINY) for size in sizes]
    requests = [serialize_request(*rows) for rows in drawn]
    of_two = [example for pair in zip(*requests[1:], strict=False) for example in pair]
    return [*requests, of_two], base_path


@pytest.mark.parametrize("name", ["movielens", "ncf", "din"])
def test_scores_are_the_same_bits_and_late_as_close(name: str, tmp_path: Path):
    requests, base_path = requests_and_model(name, tmp_path)
    export_saved_model(
        base_path / "1", tmp_path / "exported" / "1", user_features=["user_*"], late=True
    )
    scores = {}
    for mode in ("off", "exact", "late"):
        flags = [f"--example_transcoding={mode}"]
        with (
            ServerProcess(name, tmp_path / "exported", flags) as server,
            RankingClient(server.target, name, timeout_seconds=60) as client,
        ):
            answers = [client.predict_examples(rows, target="example") for rows in requests]
            assert ("tf.Examples are read as columns" in server.log()) == (mode != "off")
        scores[mode] = [answer.outputs for answer in answers]
    for off, exact, late in zip(scores["off"], scores["exact"], scores["late"], strict=True):
        for output, expected in off.items():
            assert exact[output].tobytes() == expected.tobytes()
            np.testing.assert_allclose(late[output], expected, rtol=1e-5)
