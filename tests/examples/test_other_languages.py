"""The examples in other languages; the notebooks, which are committed without outputs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from colcast.client import RankingClient, encode_predict_request
from colcast.server import ServerProcess
from nbclient import NotebookClient

from ..models import build

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "examples" / "vectors.txt"
PROTOSET = ROOT / "build" / "server" / "serving_protos.binpb"
USERS = [
    {"age": 31, "city": "Łódź", "history": [4, 8]},
    {"age": 54, "city": "Oslo", "history": [15]},
]
MOVIES = [
    {"movie": 7, "genres": ["War"], "vector": [1, 2, 3]},
    {"movie": 9, "genres": ["Noir", "War"], "vector": [4, 5, 6]},
]


def column(words: list[str]):
    """Reads a column: dtype, name, shape, values (strings in hexadecimal, - if empty)."""
    dtype, name, shape, *values = words
    if dtype == "string":
        given = np.array([bytes.fromhex(value.strip("-")) for value in values], object)
    else:
        given = np.array(values, dtype)
    return name, given.reshape([int(size) for size in shape.split(",")])


def test_vectors_are_what_the_python_client_writes():
    compared = 0
    for block in VECTORS.read_text().split("request ")[1:]:
        head, *columns, last = block.splitlines()
        _, model, signature = head.split()
        inputs = dict(column(line.split()) for line in columns)
        expected = f"bytes {encode_predict_request(model, signature, inputs).hex()}"
        assert last == expected, head
        compared += 1
    assert compared >= 4


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    base = tmp_path_factory.mktemp("movies")
    build("movies", base / "1")
    with ServerProcess("movies", base) as server:
        yield server.target


@pytest.mark.parametrize("language", ["cpp", "go", "java"])
def test_a_client_writes_the_same_bytes_and_gets_the_same_scores(language, served, tmp_path):
    build = ROOT / "examples" / language / "build.sh"
    subprocess.run([build, PROTOSET, tmp_path, VECTORS], check=True)
    ranked = subprocess.run(
        [tmp_path / "rank", served, "movies"], check=True, capture_output=True, text=True
    )
    with RankingClient(served, "movies", score_output="scores") as client:
        of_one = client.rank(USERS[0], MOVIES, target="columnar").scores
        of_two = [
            client.rank(user, [movie], target="columnar").scores[0]
            for user, movie in zip(USERS, MOVIES, strict=True)
        ]
    scores = [float(line) for line in ranked.stdout.split()]
    np.testing.assert_allclose(scores, [*of_one, *of_two], rtol=1e-6)


REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["keras_model", "load_test", "tf_serving_client"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs_and_paths_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not [cell for cell in notebook.cells if cell.get("outputs")]
    assert not re.search(r'"/(tmp|home|root|work)\b', path.read_text())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    """The test fails if a cell raises an error, such as a failed assertion."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert [cell for cell in notebook.cells if cell.get("outputs")]
