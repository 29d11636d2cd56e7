"""Lists that a request lacks are empty, in every language and over REST, as in a tf.Example."""

import json
import urllib.request
from collections.abc import Iterator
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
    return (
        parsed["user_age"] + seen * parsed["price"] + 10 * tags + tf.reduce_sum(parsed["steps"], 1)
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("lists")
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    save_parser(folder / "model", module, SPEC, _scores)
    export_saved_model(
        folder / "model", folder / "ranker" / "1", user_features=["user_*"], late=True
    )
    with ServerProcess("ranker", folder / "ranker", ["--rest_api_port=-1"]) as started:
        yield started


def given(names: set[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A user and items that have these lists."""
    user = {"user_age": 30.0} | {n: v for n, v in LISTS.items() if n in names and n[:4] == "user"}
    item = {n: v for n, v in LISTS.items() if n in names and n[:4] != "user"}
    return user, [{"price": price, **item} for price in PRICES]


def expected(stubs: Stubs, names: set[str]) -> Any:
    """The scores of tf.Examples without the other lists, as TensorFlow parses them."""
    user, items = given(names)
    examples = np.array([serialized({**user, **item}) for item in items], object)
    return stubs.predict({"examples": examples})["scores"]


SUBSETS = [set(), {"user_seen"}, {"tags"}, {"steps", "tags"}, set(LISTS)]


@pytest.mark.parametrize("names", SUBSETS, ids=sorted)
@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
def test_absent_lists_are_empty(server: ServerProcess, names: set[str], signature: str):
    user, items = given(names)
    stubs = Stubs(server.target)
    wanted = expected(stubs, names)
    columns: dict[str, Any] = {
        "user_age": np.float32([30.0]),
        "price": np.array(PRICES, np.float32),
    }
    for name, value in LISTS.items():
        if name in names:
            rows = 1 if name.startswith("user") else len(PRICES)
            columns[name] = np.array([value] * rows, object if name == "tags" else None)
            if name == "steps":
                columns[name] = columns[name].astype(np.float32)
            else:
                columns[name + "/length"] = np.full(rows, len(value))
    found = stubs.predict(columns, signature_name=signature)["scores"]
    np.testing.assert_array_equal(found, wanted)
    with RankingClient(server.target, "ranker", timeout_seconds=60) as client:
        for target in ("columnar", "late", "stock", "repeated", "example"):
            np.testing.assert_array_equal(client.rank(user, items, target=target).scores, wanted)
    plain = {n: c.tolist() for n, c in columns.items()}
    plain |= {"tags": [LISTS["tags"]] * len(PRICES)} if "tags" in names else {}
    found = _posted(server, {"signature_name": signature, "inputs": plain})["outputs"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_lists_of_rest_instances_may_be_absent(server: ServerProcess):
    rows = [{"user_age": 30.0, "price": price} for price in PRICES]
    found = _posted(server, {"signature_name": "columnar", "instances": rows})["predictions"]
    np.testing.assert_allclose(found, expected(Stubs(server.target), set()), rtol=1e-6)


@pytest.mark.parametrize("lacks", ["user_seen", "user_seen/length"])
def test_a_list_and_its_lengths_are_absent_only_together(server: ServerProcess, lacks: str):
    columns: dict[str, Any] = {
        "user_age": np.float32([30.0]),
        "price": np.array(PRICES, np.float32),
        "user_seen": np.array([[3, 4]]),
        "user_seen/length": np.array([2]),
    }
    del columns[lacks]
    for signature in ("columnar", "columnar_late"):
        with pytest.raises(grpc.RpcError) as refused:
            Stubs(server.target).predict(columns, signature_name=signature)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert f'input "{lacks}" is missing and input "' in refused.value.details()


def _posted(server: ServerProcess, body: dict[str, Any]) -> Any:
    url = f"http://{server.rest_target}/v1/models/ranker:predict"
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=60) as answer:
        return json.load(answer)
