"""Every model in models.py, converted and served: columns score as tf.Examples do, bit for bit."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models.examples import MODELS
from ..server.metrics_page import Metrics
from .conftest import served

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


def test_native_server_scores_columns_as_examples(converted, monitoring_flags):
    """Columns, and tf.Examples that the server reads as columns, as TensorFlow parses them."""
    name, base = converted
    examples = MODELS[name].examples(ROWS)
    requests = [examples, *([e] for e in examples[:5]), [examples[0]] * 3]
    with (
        ServerProcess(name, base, flags=["--example_transcoding=off"]) as parsing,
        ServerProcess(name, base, flags=monitoring_flags) as reading,
        RankingClient(parsing.target, name, timeout_seconds=60) as parser,
        RankingClient(reading.target, name, timeout_seconds=60) as reader,
    ):
        expected = [parser.predict_examples(rows, target="example") for rows in requests]
        columnar = [parser.predict_examples(rows, target="columnar") for rows in requests]
        transcoded = [reader.predict_examples(rows, target="example") for rows in requests]
        samples = Metrics(reading).samples
    counted = [s.value for s in samples if s.name == ":colcast:transcoded_requests_total"]
    assert counted == [len(requests)]
    for rows, want, *answers in zip(requests, expected, columnar, transcoded, strict=True):
        assert want.outputs
        for output, scores in want.outputs.items():
            assert len(scores) == len(rows)
            for answer in answers:
                assert answer.outputs[output].tobytes() == scores.tobytes()


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
