"""Estimators: converted, or exported with columnar inputs."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2

from ..other_environment import ESTIMATOR

DENSE = ["dnn", "old_dnn"]
NAMES = [*DENSE, "linear", "combined"]  # these have a weighted column

pytestmark = pytest.mark.skipif(
    ESTIMATOR.package("tensorflow") is None,
    reason="Estimators need TensorFlow 2.15: make setup-estimator",
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimators")
    ESTIMATOR.run("export/estimators.py", folder)
    return folder


@pytest.fixture(scope="session")
def converted(trained: Path) -> Path:
    """The trained Estimators, each with its converted form in `converted/1`."""
    for name in NAMES:
        report = export_saved_model(
            trained / name / "examples",
            trained / name / "converted" / "1",
            signatures=["predict"],
            examples=trained / name / "recorded",
        )
        (signature,) = report.signatures
        assert signature.parity.identical
        found = signature.independence["columnar"]
        weighted = "place and place_weight are equally long" in found.why_not
        assert (found.rows, weighted) == (name in DENSE, name not in DENSE), found.why_not
    return trained


@pytest.fixture(params=NAMES)
def model(request, converted: Path) -> Path:
    """The folder of one Estimator."""
    return converted / request.param


def recorded(folder: Path) -> list[bytes]:
    return list(tf.data.TFRecordDataset(str(folder / "recorded")).as_numpy_iterator())


def signature_of(folder: Path, name: str):
    proto = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    return proto.meta_graphs[0].signature_def[name]


def test_both_ways_score_the_same_when_served(model):
    rows = recorded(model)
    (model / "direct").mkdir()
    (model / "direct" / "1").symlink_to(model / "columns")
    with (
        ServerProcess(model_name="converted", model_base_path=model / "converted") as server,
        RankingClient(server.target, "converted", timeout_seconds=60) as client,
        RankingClient(
            server.target, "converted", timeout_seconds=60, target="example", signature="predict"
        ) as example_client,
    ):
        expected = example_client.predict_examples(rows).outputs
        converted = client.predict_examples(rows, target="columnar").outputs
    with (
        ServerProcess(model_name="direct", model_base_path=model / "direct") as server,
        RankingClient(server.target, "direct", timeout_seconds=60, signature="predict") as client,
    ):
        direct = client.predict_examples(rows, target="columnar").outputs
    assert set(expected) == set(converted) == set(direct)
    for output, scores in expected.items():
        np.testing.assert_array_equal(converted[output], scores)
        np.testing.assert_array_equal(direct[output], scores)


def test_converted_models_load_and_score_where_they_came_from(converted, tmp_path):
    ESTIMATOR.run(
        "export/estimators.py",
        "score",
        tmp_path / "scores.json",
        *(converted / name for name in NAMES),
    )
    found = json.loads((tmp_path / "scores.json").read_text())
    for name in NAMES:
        signatures = tf.saved_model.load(str(converted / name / "converted" / "1")).signatures
        expected = signatures["predict"](examples=tf.constant(recorded(converted / name)))
        columns = signatures["columnar"].structured_input_signature[1]
        assert found[name]["columns"] == sorted(columns)
        for output, value in found[name]["outputs"].items():
            np.testing.assert_allclose(value, expected[output].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["dnn", "linear"])
def test_classify_signature_becomes_a_predict_one(trained, tmp_path, name):
    output = tmp_path / "out"
    before = signature_of(trained / name / "examples", "serving_default")
    assert before.method_name == "tensorflow/serving/classify"
    report = export_saved_model(trained / name / "examples", output)
    after = signature_of(output, "columnar")
    assert after.method_name == "tensorflow/serving/predict"
    assert set(after.outputs) == {"scores", "classes"}
    assert report.signatures[0].parity.identical
