"""Real models on the real server: every target gives TensorFlow's scores; the recipes run."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models.saving import save_parser, serialized
from ..server.servers import Stubs
from .conftest import CAN, ITEMS, USER

TARGETS = ("auto", "late", "columnar", "stock", "repeated", "example")


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RankingClient]:
    with RankingClient(server.target, "movies", timeout_seconds=60) as connected:
        yield connected


def expected(models: Path) -> Any:
    """TensorFlow's own scores, from tf.Examples."""
    model = tf.saved_model.load(str(models / "1"))
    examples = [serialized({**USER, **item}) for item in ITEMS]
    return model.signatures["serving_default"](tf.constant(examples))["scores"].numpy()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_scores_as_tensorflow_does(client: RankingClient, models: Path, target: Any):
    ranking = client.rank(USER, ITEMS, target=target, outputs=["scores"])
    np.testing.assert_array_equal(ranking.scores, expected(models))
    assert list(ranking.outputs) == ["scores"]
    assert ranking.model_version == 1


def test_the_server_declares_what_it_can_do(client: RankingClient):
    assert client.schema().can == CAN


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("used_before", "several"), [(False, False), (True, False), (True, True)])
def test_a_child_process_opens_its_own_channels(
    server: ServerProcess, used_before: bool, several: bool
):
    local = server.target.replace("127.0.0.1", "localhost")
    address = [server.target, local] if several else server.target
    code = f"""
import os, sys
from colcast.client import RankingClient
client = RankingClient({address!r}, "movies", timeout_seconds=120)
if {used_before}:
    client.schema()
child = os.fork()
if child == 0:
    fresh = client.encode({USER!r}, {ITEMS!r})
    client.send(fresh)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
client.rank({USER!r}, {ITEMS!r})
print("both")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "both\n", done.stderr


def test_the_recipes_run(server: ServerProcess):
    page = Path(__file__).parents[2] / "docs" / "client.md"
    text = page.read_text().replace("localhost:8500", server.target)
    recipes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    runnable = [recipe for recipe in recipes if ".pem" not in recipe]
    assert len(recipes) == len(runnable) + 1  # one recipe needs certificate files
    row = {"age": 31, "city": "Łódź", "history": [4], "movie": 7, "genres": ["War"]}
    names: dict[str, Any] = {"examples": [serialized({**row, "vector": [0.1, 0.2, 0.3]})] * 2}
    for recipe in runnable:
        exec(recipe, names)
    names["client"].close()


# Lists that a request lacks are empty, in every language and over REST, as in a tf.Example.

SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.float32),
    "user_seen": tf.io.VarLenFeature(tf.int64),
    "price": tf.io.FixedLenFeature([], tf.float32),
    "tags": tf.io.RaggedFeature(tf.string),
    "steps": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
}
LISTS: dict[str, Any] = {"user_seen": [3, 4], "tags": ["a", "b"], "steps": [0.5, 2.0]}
PRICES = [1.0, 2.0, 4.0]


def _scores(parsed: dict[str, Any]) -> Any:
    seen = tf.sparse.reduce_sum(tf.cast(parsed["user_seen"], tf.float32), axis=1)
    tags = tf.cast(parsed["tags"].row_lengths(), tf.float32)
    steps = tf.reduce_sum(parsed["steps"], 1)
    return parsed["user_age"] + seen * parsed["price"] + 10 * tags + steps


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("lists")
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    save_parser(folder / "model", module, SPEC, _scores)
    exported = folder / "ranker" / "1"
    export_saved_model(folder / "model", exported, user_features=["user_*"], late=True)
    with ServerProcess("ranker", folder / "ranker", ["--rest_api_port=-1"]) as started:
        yield started


@pytest.mark.parametrize(
    "names", [set(), {"user_seen"}, {"tags"}, {"steps", "tags"}, set(LISTS)], ids=sorted
)
def test_absent_lists_are_empty(lists: ServerProcess, names: set[str]):
    stubs, given = Stubs(lists.target), {n: v for n, v in LISTS.items() if n in names}
    user = {"user_age": 30.0} | {n: v for n, v in given.items() if n == "user_seen"}
    item = {n: v for n, v in given.items() if n != "user_seen"}
    items = [{"price": price, **item} for price in PRICES]
    examples = np.array([serialized({**user, **item}) for item in items], object)
    wanted = stubs.predict({"examples": examples})["scores"]
    with RankingClient(lists.target, "ranker", timeout_seconds=60) as client:
        for target in ("columnar", "late", "stock", "repeated", "example"):
            np.testing.assert_array_equal(client.rank(user, items, target=target).scores, wanted)
    plain: dict[str, Any] = {"user_age": [30.0], "price": PRICES}
    for name, value in given.items():
        plain[name] = [value] * (1 if name == "user_seen" else len(PRICES))
        if name != "steps":
            plain[name + "/length"] = [len(value)] * len(plain[name])
    dtypes = {"tags": object, "user_seen": np.int64}
    columns = {
        name: np.array(values, np.int64 if name.endswith("/length") else dtypes.get(name, "f4"))
        for name, values in plain.items()
    }
    for signature in ("columnar", "columnar_late"):
        found = stubs.predict(columns, signature_name=signature)["scores"]
        np.testing.assert_array_equal(found, wanted)
        body = json.dumps({"signature_name": signature, "inputs": plain}).encode()
        url = f"http://{lists.rest_target}/v1/models/ranker:predict"
        with urllib.request.urlopen(url, body, timeout=60) as answer:
            np.testing.assert_allclose(json.load(answer)["outputs"], wanted, rtol=1e-6)


@pytest.mark.parametrize("lacks", ["user_seen", "user_seen/length"])
def test_a_list_and_its_lengths_are_absent_only_together(lists: ServerProcess, lacks: str):
    columns: dict[str, Any] = {"user_age": [30.0], "price": np.float32(PRICES)}
    columns |= {"user_seen": np.array([[3, 4]]), "user_seen/length": np.array([2])}
    del columns[lacks]
    for signature in ("columnar", "columnar_late"):
        with pytest.raises(grpc.RpcError) as refused:
            Stubs(lists.target).predict(columns, signature_name=signature)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert f'input "{lacks}" is missing and input "' in refused.value.details()
