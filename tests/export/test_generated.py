"""Generated rows have only numbers that the model can score and lists that it accepts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from .conftest import served

ROWS = 60
USER = tf.io.FixedLenFeature([], tf.int64)


def normal(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape), tf.float32)


@pytest.fixture(name="exported")
def _exported(exported_report: Callable[..., Any]) -> Callable[..., Any]:
    """Exports a model with a warm-up request of ROWS rows; returns the signature's report."""
    options: dict[str, Any] = {"user_features": ["user_*"], "late": True, "warmup": [ROWS]}

    def export(spec: dict[str, Any], score: Any, *resources: Any) -> Any:
        report = exported_report({"user_id": USER, **spec}, score, *resources, **options)
        assert report.parity.identical
        return report

    return export


def generated(folder: Path) -> dict[str, Any]:
    """The columns of the warm-up request."""
    file = str(folder / "out" / "assets.extra" / "tf_serving_warmup_requests")
    (log,) = map(
        prediction_log_pb2.PredictionLog.FromString,
        tf.data.TFRecordDataset(file).as_numpy_iterator(),
    )
    return {key: tf.make_ndarray(value) for key, value in log.predict_log.request.inputs.items()}


def scored(by: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Scores a user and a price; `by` may make the score NaN or infinite."""
    table, weights = normal(100, 4), normal(4)

    def score(features: Any) -> Any:
        user = tf.linalg.matvec(tf.gather(table, features["user_id"] % 100), weights)
        return user + by(features["price"])

    return score


AS_FLOAT: Callable[[Any], Any] = lambda x: tf.cast(x, tf.float32)  # noqa: E731
NUMBERS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "log": (tf.float32, tf.math.log, lambda x: x > 0),
    "sqrt": (tf.float32, tf.sqrt, lambda x: x >= 0),
    "reciprocal": (tf.float32, tf.math.reciprocal, lambda x: x != 0),
    "logit": (tf.float32, lambda x: tf.math.log(x / (1 - x)), lambda x: (x > 0) & (x < 1)),
    "arc cosine": (tf.float32, tf.acos, lambda x: abs(x) <= 1),
    "exponential": (tf.float32, tf.exp, lambda x: x < 89),
    "log of a count": (tf.int64, lambda x: tf.math.log(AS_FLOAT(x)), lambda x: x > 0),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_scored_nan_or_infinite_are_drawn_again(
    name: str, exported: Any, tmp_path: Path
) -> None:
    dtype, by, in_range = NUMBERS[name]
    report = exported({"price": tf.io.FixedLenFeature([], dtype)}, scored(by))
    columns = generated(tmp_path)
    assert in_range(columns["price"]).all()
    assert len(np.unique(columns["price"])) > ROWS / 2
    assert len(np.unique(columns["user_id"])) > ROWS / 2
    with served(tmp_path / "out") as model:
        assert np.isfinite(model.run("columnar", columns)["scores"]).all()
    assert report.parity.not_finite.startswith("redrawn, because other generated values")
    assert report.stages.written, report.stages.reason
    assert "price (" in report.parity.not_finite
    assert "user_id" not in report.parity.not_finite


def test_a_default_that_is_scored_nan_is_not_drawn(exported: Any, tmp_path: Path) -> None:
    spec = {"price": tf.io.FixedLenFeature([], tf.float32, default_value=-1.0)}
    exported(spec, scored(tf.math.log))
    assert (generated(tmp_path)["price"] > 0).all()


def test_where_every_number_is_scored_nan_the_report_asks_for_requests(exported: Any) -> None:
    spec = {"price": tf.io.FixedLenFeature([], tf.float32)}
    report = exported(spec, scored(lambda x: tf.math.log(-1 - x * x)))
    assert "record requests and name them with --examples" in report.parity.not_finite


@pytest.mark.parametrize(
    ("dtype", "by"),
    [
        (tf.int64, lambda x: AS_FLOAT(100 // x)),
        (tf.int64, lambda x: tf.gather(normal(40), x)),
        (tf.string, tf.strings.to_number),
    ],
    ids=["divisor", "vocabulary", "text"],
)
def test_values_that_the_model_refuses_are_not_drawn(
    dtype: Any, by: Any, exported: Any, tmp_path: Path
) -> None:
    spec = {"price": tf.io.FixedLenFeature([], dtype)}
    report = exported(spec, scored(by))
    assert len(np.unique(generated(tmp_path)["price"])) > ROWS / 4
    assert report.parity.not_finite == ""


def test_a_model_that_accepts_only_known_words_and_numbers_gets_those(
    exported_report: Any, tmp_path: Path
) -> None:
    """Keras's FeatureSpace makes such models: string_categorical(num_oov_indices=0)."""
    layers = tf.keras.layers
    words = layers.StringLookup(vocabulary=["normal", "fixed", "reversible"], num_oov_indices=0)
    counts = layers.IntegerLookup(vocabulary=[2, 5, 7, 11], num_oov_indices=0)
    table = normal(8)

    def score(features: Any) -> Any:
        known = words(features["word"]) + counts(features["count"])
        return tf.gather(table, known) + tf.math.log(features["price"])

    spec = {
        "word": tf.io.FixedLenFeature([], tf.string),
        "count": tf.io.FixedLenFeature([], tf.int64),
        "price": tf.io.FixedLenFeature([], tf.float32),
    }
    exported_report(spec, score, words.lookup_table, counts.lookup_table, warmup=[ROWS])
    columns = generated(tmp_path)
    assert set(columns["word"]) == {b"normal", b"fixed", b"reversible"}
    assert set(columns["count"]) == {2, 5, 7, 11}
    assert (columns["price"] > 0).all()


def reshaped(price: Any) -> Any:
    """Raises an error unless every row has one value."""
    return tf.reshape(tf.sparse.to_dense(price), [-1, 1])


def filled(price: Any) -> Any:
    """Fills in missing values, like TFX's Chicago Taxi example."""
    shape = [price.dense_shape[0], 1]
    return tf.sparse.to_dense(tf.SparseTensor(price.indices, price.values, shape))


@pytest.mark.parametrize(
    ("dense", "lengths"), [(reshaped, {1}), (filled, {0, 1})], ids=["reshaped", "filled"]
)
def test_an_optional_scalar_has_one_value_at_most_and_other_lists_have_more(
    dense: Callable[[Any], Any], lengths: set[int], exported: Any, tmp_path: Path
) -> None:
    table = normal(100)

    def score(features: Any) -> Any:
        tags = tf.gather(table, tf.sparse.to_dense(features["tags"]) % 100)
        return dense(features["price"])[:, 0] + tf.reduce_sum(tags, 1)

    spec = {"price": tf.io.VarLenFeature(tf.float32), "tags": tf.io.VarLenFeature(tf.int64)}
    exported(spec, score)
    columns = generated(tmp_path)
    assert set(columns["price/length"]) == lengths
    assert set(columns["tags/length"]) >= {0, 1, 2, 5}


IDS = tf.TensorSpec([None], tf.int64, "user_id"), tf.TensorSpec([None], tf.float32, "price")
LATE: dict[str, Any] = {"user_features": ["user_*"], "late": True}


def test_dependence_shown_only_by_infinite_scores_is_not_taken_for_the_users(
    exported_report: Any, tmp_path: Path
) -> None:
    """Large ages make all trial scores infinite, so only the rule shows that rows are dependent."""

    def serve(user_age: Any, price: Any) -> dict[str, Any]:
        old = tf.reduce_sum(tf.cast(user_age > 30, tf.float32))
        return {"scores": tf.tanh(user_age) * price + old + tf.exp(user_age / 20)}

    takes = [tf.TensorSpec([None], tf.float32, name) for name in ("user_age", "price")]
    report = exported_report(takes, serve, **LATE)
    assert not report.independence["columnar_late"].rows
    columns = {"user_age": np.float32([40]), "price": np.arange(20, dtype=np.float32)}
    with served(tmp_path / "out") as model:
        late = model.run("columnar_late", columns)
        columns["user_age"] = np.repeat(columns["user_age"], 20)
        np.testing.assert_allclose(
            late["scores"], model.run("columnar", columns)["scores"], rtol=1e-5
        )


def test_an_output_may_be_empty_where_others_have_rows(exported_report: Any) -> None:
    def score(user: Any, price: Any) -> dict[str, Any]:
        scores = tf.tanh(tf.cast(user, tf.float32)) * price
        return {"scores": scores, "huge": tf.boolean_mask(price, price > 1e30)}

    assert exported_report(IDS, score, **LATE).late is not None


def test_a_model_may_score_a_candidate_that_is_alone_nan(exported_report: Any) -> None:
    def score(user: Any, price: Any) -> dict[str, Any]:
        others = tf.cast(tf.shape(price)[0] - 1, tf.float32)
        mean = (tf.reduce_sum(price) - price) / others
        return {"scores": tf.tanh(tf.cast(user, tf.float32)) * (price - mean)}

    assert not exported_report(IDS, score, **LATE).independence["columnar"].rows
