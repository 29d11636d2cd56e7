"""An optional scalar is declared like a list, and gets one value where the model takes no other."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.loadtest.send.generated import accepted_by, fewest, generated, ids_below
from colcast.server import ServerProcess

SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "price": tf.io.FixedLenFeature([], tf.float32),
    "discount": tf.io.VarLenFeature(tf.float32),
    "tags": tf.io.VarLenFeature(tf.int64),
}


def serve(examples: Any) -> Any:
    """`discount` has to have one value per row, the other lists have any number."""
    parsed = tf.io.parse_example(examples, SPEC)
    lists = [tf.sparse.reduce_sum(parsed[name], 1) for name in ("user_history", "tags")]
    discount = tf.reshape(tf.sparse.to_dense(parsed["discount"]), [tf.shape(examples)[0], 1])
    scalars = tf.cast(parsed["user_age"], tf.float32) * parsed["price"] + discount[:, 0]
    return {"scores": scalars + tf.cast(tf.add_n(lists), tf.float32)}


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of that model."""
    folder = tmp_path_factory.mktemp("optional")
    signature = tf.function(serve, [tf.TensorSpec([None], tf.string, "examples")])
    tf.saved_model.save(tf.Module(), str(folder / "model"), signatures=signature)
    served = folder / "served"
    export_saved_model(folder / "model", served / "1", user_features=["user_*"], late=True)
    with ServerProcess("optional", served) as server:
        yield server


def test_only_what_has_to_have_one_value_does(optional: ServerProcess) -> None:
    with RankingClient(optional.target, "optional", timeout_seconds=60) as client:
        requests = generated(
            client.schema(), [40, 40], 0, ["user_*"], accepts=accepted_by(client, None)
        )
    for request in requests:
        assert {len(values) for values in request.items["discount"]} == {1}
        assert len({len(values) for values in request.items["tags"]}) > 3
    assert any(len(request.user["user_history"]) > 1 for request in requests)


def test_every_format_is_measured(optional: ServerProcess, tmp_path: Path) -> None:
    command = ["loadtest", f"--target={optional.target}", "--model=optional", "--clients=1"]
    command += ["--formats=example,repeated,columnar,late", "--sizes=5", "--distinct=4"]
    command += ["--windows=1", "--seconds=0.2", "--tolerance=1", f"--output={tmp_path}"]
    assert main(command) == 0
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["left_out"] == []
    assert len(report["series"]) == 4


@pytest.mark.parametrize("needed", [set(), {"c"}, {"a", "e"}, set("abcde")])
def test_the_fewest_are_found(needed: set[str]) -> None:
    assert fewest("abcde", lambda names: needed <= set(names)) == needed


def test_what_one_value_does_not_mend_stays_a_list() -> None:
    assert fewest("abcde", lambda names: False) == set()


@pytest.mark.parametrize("ids", [1000, 100_000])
def test_ids_stay_within_the_tables(ids: int) -> None:
    sizes = {"country": 3, "movie": 40, "user": 64, "hashed": 1 << 62}

    def takes(below: Mapping[str, int]) -> bool:
        return all(below.get(name, ids) <= size for name, size in sizes.items())

    assert ids_below(sizes, ids, takes) == {"country": 2, "movie": 32, "user": 64}


def test_a_model_that_takes_no_ids_keeps_its_bounds() -> None:
    assert ids_below(["a", "b"], 100, lambda below: False) == {}
