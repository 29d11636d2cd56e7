"""Every model in models.py, converted and served: columns score as tf.Examples do, bit for bit."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from .conftest import served
from .models import MODELS

ROWS = 200


@pytest.fixture(scope="module", params=MODELS)
def converted(request, tmp_path_factory):
    """The model's name and the folder of its converted version 1."""
    model = MODELS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model.build(folder / "model")
    recorded = folder / "recorded"
    with tf.io.TFRecordWriter(str(recorded)) as writer:
        for example in model.examples(50, seed=1):
            writer.write(example)
    report = export_saved_model(folder / "model", folder / "served" / "1", examples=recorded)
    shutil.rmtree(folder / "model")
    assert report.signatures[0].parity.identical
    assert report.signatures[0].parity.recorded_rows == 50
    return request.param, folder / "served"


def test_native_server_scores_columns_as_examples(converted):
    name, base = converted
    examples = MODELS[name].examples(ROWS)
    with (
        ServerProcess(model_name=name, model_base_path=base) as server,
        RankingClient(server.target, name, timeout_seconds=60) as client,
    ):
        expected = client.predict_examples(examples, target="example")
        columnar = client.predict_examples(examples, target="columnar")
        single = [client.predict_examples([e], target="columnar") for e in examples[:5]]
        single_expected = [client.predict_examples([e], target="example") for e in examples[:5]]
    assert expected.outputs
    for output, scores in expected.outputs.items():
        assert len(scores) == ROWS
        assert scores.tobytes() == columnar.outputs[output].tobytes()
        for one, wanted in zip(single, single_expected, strict=True):
            assert one.outputs[output].tobytes() == wanted.outputs[output].tobytes()


def test_python_sees_the_columnar_signature(converted):
    name, base = converted
    example = MODELS[name].examples(1)
    signatures = tf.saved_model.load(str(base / "1")).signatures
    with served(base / "1") as model:
        signature = model.meta_graph.signature_def["columnar"]
        expected = model.run("serving_default", {"examples": example})
    assert set(signatures["columnar"].structured_input_signature[1]) == set(signature.inputs)
    scores = signatures["serving_default"](examples=tf.constant(example))
    for output, value in expected.items():
        np.testing.assert_array_equal(scores[output].numpy(), value)
