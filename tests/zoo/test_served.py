"""The zoo's models behind the native server; MovieLens's formats have equal scores."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import tensorflow as tf
from colcast.zoo import wide
from colcast.zoo.examples import serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.papers import PAPERS, ensure
from colcast.zoo.registry import MODELS


def session_scores(version: Path, examples: list[bytes]) -> dict[str, np.ndarray]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
        signature = meta_graph.signature_def["serving_default"]
        (inputs,) = signature.inputs.values()
        outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
        return session.run(outputs, {inputs.name: examples})


def eager_scores(version: Path, examples: list[bytes]) -> dict[str, np.ndarray]:
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    return {name: value.numpy() for name, value in signature(tf.constant(examples)).items()}


@pytest.mark.parametrize("name", ["movielens", "ncf", "wide_deep", "din", "dien", "small wide"])
def test_a_session_finds_all_variables(name: str, tmp_path: Path):
    if name == "movielens":
        train.ensure(train.WORK_DIR)
        base_path, rows = train.WORK_DIR / "model", MODELS["movielens"].requests([5], 0)[0]
    elif name == "small wide":
        sizes = wide.Wide(user_features=4, item_features=4, hidden=(8,))
        base_path, rows = wide.ensure(sizes, tmp_path), next(wide.requests(sizes, 5, 0))
    else:
        paper = PAPERS[name]
        base_path, rows = ensure(paper, 0.001, tmp_path), paper.request(5, 0, 0.001)
    examples = serialize_request(*rows)
    in_session = session_scores(base_path / "1", examples)
    eager = eager_scores(base_path / "1", examples)
    assert in_session.keys() == eager.keys()
    for output in eager:
        np.testing.assert_allclose(in_session[output], eager[output], rtol=1e-5)


def test_an_interrupted_demo_stops_its_server():
    train.ensure(train.WORK_DIR)
    demo = subprocess.Popen(
        [sys.executable, "-u", "-m", "colcast.bench.demo"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout
    server = 0
    for line in demo.stdout:
        if ", process " in line:
            server = int(line.rpartition(" ")[2])
        if "Comparing formats" in line:
            demo.send_signal(signal.SIGTERM)
            break
    rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, rest
    assert "interrupted" in rest
    assert not psutil.pid_exists(server)
