"""Signatures of TF-Ranking that parse ExampleListWithContext: scores are those of TF-Ranking."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import ExportError, export_saved_model
from colcast.server import ServerProcess
from tensorflow_serving.apis import input_pb2

from ..other_environment import ESTIMATOR
from .conftest import served

PREDICT = "tensorflow/serving/predict"

pytestmark = pytest.mark.skipif(
    ESTIMATOR.package("tensorflow_ranking") is None,
    reason="TF-Ranking needs TensorFlow 2.15: make setup-estimator",
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranking")
    ESTIMATOR.run("export/ranking_models.py", folder)
    return folder


@pytest.fixture(scope="session")
def report(trained: Path) -> Any:
    return export_saved_model(
        trained / "pointwise" / "model",
        trained / "pointwise" / "served" / "1",
        signatures=[PREDICT],
        late=True,
        exact="always",
        examples=trained / "pointwise" / "lists",
    )


def recorded(trained: Path) -> list[Any]:
    file = str(trained / "pointwise" / "lists")
    serialized = tf.data.TFRecordDataset(file).as_numpy_iterator()
    return [input_pb2.ExampleListWithContext.FromString(one) for one in serialized]


def row(example: Any) -> dict[str, Any]:
    """The features of a tf.Example."""
    return {
        name: list(getattr(feature, feature.WhichOneof("kind") or "bytes_list").value)
        for name, feature in example.features.feature.items()
    }


def test_the_context_is_the_user_and_the_examples_are_the_items(report: Any) -> None:
    (signature,) = report.signatures
    sides = {feature.name: str(feature.side) for feature in signature.features}
    assert sides == {
        "user_age": "user",
        "user_colors": "user",
        "color": "item",
        "price": "item",
        "vector": "item",
    }


def test_the_stages_of_a_pointwise_scorer_are_independent_its_row_numbers_are_not(
    report: Any,
) -> None:
    """TF-Ranking computes positions in a list of lists from the numbers of rows."""
    (signature,) = report.signatures
    assert max(signature.parity.differences.values()) < 1e-6
    assert signature.parity.recorded_rows == 5 + 1 + 8 + 3
    assert signature.stages.written
    independence = signature.independence
    assert independence.keys() >= {*signature.stages.signatures, "columnar_late"}
    user, item = (independence[f"columnar_{domain}"] for domain in ("user", "item"))
    assert (user.rows, user.own_length) == (True, ())
    assert (item.rows, item.own_length) == (True, ())
    assert not independence["columnar"].rows


@pytest.fixture(scope="module")
def client(trained: Path, report: Any) -> Iterator[RankingClient]:
    base_path = trained / "pointwise" / "served"
    with ServerProcess("lists", base_path) as server, RankingClient(server.target, "lists") as it:
        yield it


@pytest.mark.parametrize("target", ["columnar", "late", "repeated"])
def test_a_client_gets_the_scores_of_tf_ranking(
    trained: Path, client: RankingClient, target: Any
) -> None:
    scores = np.load(trained / "pointwise" / "scores.npz")
    for i, one in enumerate(recorded(trained)):
        items = [row(example) for example in one.examples]
        given = client.rank({"user_colors": [], **row(one.context)}, items, target=target).scores
        for kind in ("alone", "together"):  # also if lists are padded to a longer one
            np.testing.assert_allclose(given, scores[f"{kind}/{i}"], rtol=1e-4, atol=1e-5)


def test_lists_of_several_users_go_into_one_request(trained: Path, client: RankingClient) -> None:
    scores = np.load(trained / "pointwise" / "scores.npz")
    pairs = [
        ({"user_colors": [], **row(one.context)}, [row(example) for example in one.examples])
        for one in recorded(trained)
    ]
    for i, ranking in enumerate(client.rank_many(pairs)):
        np.testing.assert_allclose(ranking.scores, scores[f"together/{i}"], rtol=1e-4, atol=1e-5)


def test_a_model_that_compares_the_examples_of_a_list_is_refused(
    trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match="depend on the other examples of a list"):
        export_saved_model(trained / "listwise" / "model", tmp_path / "out", signatures=[PREDICT])
    assert not (tmp_path / "out").exists()


def decode(serialized: Any) -> Any:
    """Decodes contexts and examples the way TF-Ranking does."""
    name = "tensorflow.serving.ExampleListWithContext"
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorSet().file.add(
        name="l.proto", package="tensorflow.serving", syntax="proto3"
    )
    message = file.message_type.add(name="ExampleListWithContext")
    message.field.add(name="examples", number=1, type=12, label=3)
    message.field.add(name="context", number=2, type=12, label=1)
    source = b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    kinds = [tf.string, tf.string]
    return tf.io.decode_proto(serialized, name, ["context", "examples"], kinds, source).values


def save_lists(folder: Path, context: Any, examples: Any, cut_to: int | None = None) -> Path:
    """Saves a model that has a context and an example feature, and may truncate lists."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def serve(inputs: Any) -> Any:
        users, items = decode(inputs)
        if cut_to is not None:
            items = items[:, :cut_to]
        user = tf.io.parse_example(tf.reshape(users, [-1]), context)
        item = tf.io.parse_example(tf.reshape(items, [-1]), examples)
        scores = tf.reshape(sum(item.values()), [-1, tf.shape(items)[1]])
        return {"scores": scores + tf.reshape(sum(user.values()), [-1, 1])}

    tf.saved_model.save(tf.Module(), str(folder), signatures=serve)
    return folder


FLOAT = tf.io.FixedLenFeature([], tf.float32, 0.0)


@pytest.mark.parametrize(
    ("context", "examples", "cut_to", "message"),
    [
        ({"x": FLOAT}, {"y": FLOAT}, 3, "truncates"),
        ({"x": FLOAT}, {"x": FLOAT}, None, "'x' of signature 'serving_default' is parsed from the"),
    ],
)
def test_lists_that_columns_cannot_represent_are_refused(
    context: Any, examples: Any, cut_to: int | None, message: str, tmp_path: Path
) -> None:
    model = save_lists(tmp_path / "model", context, examples, cut_to)
    with pytest.raises(ExportError, match=message):
        export_saved_model(model, tmp_path / "out")


def test_lists_are_converted_without_late_too(tmp_path: Path) -> None:
    model = save_lists(tmp_path / "model", {"x": FLOAT}, {"y": FLOAT})
    report = export_saved_model(model, tmp_path / "out")
    assert report.signatures[0].parity.identical
    with served(tmp_path / "out") as loaded:
        given = loaded.run("columnar", {"x": [1.0, 1.0], "y": [2.0, 3.0]})
    np.testing.assert_array_equal(given["scores"], [3.0, 4.0])
