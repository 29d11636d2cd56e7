"""The whole way: a model that parses tf.Example is exported, and its late signature scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.export.report._recorded import read_report
from colcast.server import ServerProcess

from ..models.ranker import ITEMS, USER
from ..models.saving import serialized


@pytest.fixture(scope="module")
def expected(base_path: Path) -> Any:
    """The scores of the original signature."""
    loaded = tf.saved_model.load(str(base_path / "1"))
    examples = tf.constant([serialized(USER | item) for item in ITEMS])
    return loaded.signatures["serving_default"](examples=examples)["score"].numpy()


@pytest.fixture(scope="module")
def client(base_path: Path) -> Iterator[RankingClient]:
    """A client of the native server with the exported model."""
    with ServerProcess("ranker", base_path) as server, RankingClient(server.target, "ranker") as it:
        yield it


@pytest.mark.parametrize(
    ("signature", "tolerance"), [("columnar_late", 1e-5), ("columnar_exact", 0)]
)
def test_plain_tensorflow_runs_the_new_signatures_from_the_saved_model_alone(
    base_path: Path, expected: Any, signature: str, tolerance: float
) -> None:
    late = tf.saved_model.load(str(base_path / "1")).signatures[signature]
    words = np.array([word.encode() for word in USER["user_words"]], object)[None]
    columns = {
        "user_age": tf.constant([USER["user_age"]], tf.int64),
        "user_words": tf.constant(words),
        "item_id": tf.constant([item["item_id"] for item in ITEMS], tf.int64),
        "item_price": tf.constant([item["item_price"] for item in ITEMS], tf.float32),
    }
    named = {name: columns.get(name) for name in late.structured_input_signature[1]}
    (lengths,) = (name for name, column in named.items() if column is None)
    named[lengths] = tf.constant([3], tf.int64)
    np.testing.assert_allclose(late(**named)["score"], expected, rtol=tolerance)


def test_native_server_scores_the_user_sent_once_equal_to_the_last_bit(
    client: RankingClient, base_path: Path
) -> None:
    assert "columnar_exact" in tf.saved_model.load(str(base_path / "1")).signatures
    examples = [serialized(USER | item) for item in ITEMS]
    expected = client.predict_examples(examples).scores
    np.testing.assert_array_equal(client.rank(USER, ITEMS).scores, expected)


def test_native_server_scores_the_same_late(client: RankingClient, expected: Any) -> None:
    late = client.rank(USER, ITEMS, target="late").scores
    np.testing.assert_allclose(late, expected, rtol=1e-5)


def test_defaults_and_empty_lists_hold_for_late_columns_too(client: RankingClient) -> None:
    user, items = {"user_words": []}, [{"item_id": n} for n in range(5)]
    late = client.rank(user, items, target="late").scores
    examples = [serialized(user | item) for item in items]
    np.testing.assert_allclose(late, client.predict_examples(examples).scores, rtol=1e-5)


def test_recorded_examples_are_tried_too(base_path: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    with tf.io.TFRecordWriter(str(recorded)) as writer:
        for item in ITEMS:
            writer.write(serialized(USER | item))
    report = export_saved_model(
        base_path.parent / "model",
        tmp_path / "out",
        user_features=["user_*"],
        late=True,
        examples=recorded,
    )
    late, stages = report.signatures[0].late, report.signatures[0].stages
    assert late is not None
    assert stages is not None
    assert stages.reuse is not None
    assert stages.reuse.rows == len(ITEMS)
    assert late.user_ops > 10
    assert max(difference["score"] for difference in late.proof.values()) < 1e-5


def test_plain_tensorflow_runs_the_three_stages_one_after_the_other(
    base_path: Path, expected: Any
) -> None:
    stages = tf.saved_model.load(str(base_path / "1")).signatures
    words = np.array([[word.encode() for word in USER["user_words"]]], object)
    user = stages["columnar_user"](
        user_age=tf.constant([USER["user_age"]], tf.int64),
        user_words=tf.constant(words),
        **{"user_words/length": tf.constant([3], tf.int64)},
    )
    item = stages["columnar_item"](
        item_id=tf.constant([item["item_id"] for item in ITEMS], tf.int64),
        item_price=tf.constant([item["item_price"] for item in ITEMS], tf.float32),
    )
    rows = {
        "row_to_user": tf.zeros(len(ITEMS), tf.int64),
        "user_state/row": tf.constant([0], tf.int64),
    }
    scores = stages["columnar_pair"](**user, **item, **rows)["score"]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_the_report_is_read_back_whole(base_path: Path) -> None:
    report = read_report(base_path / "1")
    assert report is not None
    stages = report.signatures[0].stages
    assert stages is not None
    assert stages.written
    assert stages.signatures == ("columnar_user", "columnar_item", "columnar_pair")
    assert stages.users_per_run == "one"  # it sums words up with the padding of a longer list
