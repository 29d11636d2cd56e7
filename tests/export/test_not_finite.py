"""Differences beside NaN or infinity come with advice: generated rows may be out of range."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.export.graph._comparison import Trial, compare_trials
from colcast.export.trials._both_signatures import _reason
from colcast.export.trials._parity import _check

from ..models.saving import save_parser


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_proof_that_fails_on_values_that_are_not_finite_says_so(value: float) -> None:
    expected = {"scores": np.array([1.0, value], np.float32)}
    given = {"scores": np.array([1.0, 2.0], np.float32)}
    trial = Trial(2, expected, given, {"scores": np.zeros(2)})
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        compare_trials([trial], 1e-5)
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        _check(np.inf, "scores", expected["scores"], given["scores"])


def test_a_proof_that_fails_on_finite_values_does_not() -> None:
    scores = np.array([1.0, 2.0], np.float32)
    trial = Trial(2, {"scores": scores}, {"scores": 2 * scores}, {"scores": np.zeros(2)})
    with pytest.raises(ExportError) as failed:
        compare_trials([trial], 1e-5)
    assert "--examples" not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("2 root errors\n  (0) no such id\n\n\t [[{{node x}}]]", "(0) no such id"),
        ("no such id\n\n\n\t [[{{node x}}]]", "no such id"),
        ("\n\t [[{{node x}}]]", "[[{{node x}}]]"),
        ("", "InvalidArgumentError"),
    ],
)
def test_a_refusal_always_has_a_reason(said: str, reason: str) -> None:
    assert _reason(tf.errors.InvalidArgumentError(None, None, said)) == reason


def test_a_model_that_takes_the_log_of_a_price_keeps_its_stages(tmp_path: Path) -> None:
    """Half of the generated prices are negative, and their scores NaN."""
    spec = {
        "user_city": tf.io.FixedLenFeature([], tf.int64),
        "price": tf.io.FixedLenFeature([], tf.float32),
        "item_shop": tf.io.FixedLenFeature([], tf.int64),
    }
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return tf.constant(random.normal(size=shape), tf.float32)

    tables, products = weights(2, 1000, 32), (weights(32, 64), weights(33, 64))

    def score(parsed: Any) -> Any:
        user = tf.gather(tables[0], parsed["user_city"] % 1000) @ products[0]
        price = tf.math.log(parsed["price"])[:, None]
        shop = tf.gather(tables[1], parsed["item_shop"] % 1000)
        item = tf.concat([shop, price], 1) @ products[1]
        return tf.reduce_sum(tf.nn.relu(user) * tf.nn.relu(item), 1)

    save_parser(tmp_path / "model", tf.Module(), spec, score)
    export_saved_model(tmp_path / "model", tmp_path / "out", user_features=["user_*"], late=True)
    record = json.loads((tmp_path / "out" / "assets.extra" / "colcast.json").read_text())
    kept = record["signatures"]["columnar"]["independence"]
    assert {"columnar_late", "columnar_user", "columnar_item"} <= set(kept)
