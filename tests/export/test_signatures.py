"""Several signatures, their names, and which one is the default: for servers and for Python."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model

from ..models.saving import save_parser
from .conftest import example, served

EXAMPLES = np.array([example(x=2.0), example(x=-1.0)], object)
COLUMNS = {"x": np.array([2, -1], np.float32)}


@pytest.fixture(scope="module")
def two_signatures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two") / "model"
    module = tf.Module()
    module.weight = tf.Variable(3.0)
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}
    takes = [tf.TensorSpec([None], tf.string, name="examples")]

    @tf.function(input_signature=takes)
    def triple(examples):
        return {"tripled": tf.io.parse_example(examples, spec)["x"] * module.weight}

    @tf.function(input_signature=takes)
    def shift(examples):
        return {"shifted": tf.io.parse_example(examples, spec)["x"] + module.weight}

    signatures = {"serving_default": triple, "shift": shift}
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return folder


def test_each_signature_gets_a_name(two_signatures, tmp_path):
    output = tmp_path / "out"
    export_saved_model(two_signatures, output, signatures=["serving_default", "shift"])
    with served(output) as model:
        tripled = model.run("columnar", COLUMNS)["tripled"]
        shifted = model.run("columnar_shift", COLUMNS)["shifted"]
    np.testing.assert_array_equal(tripled, [6, -3])
    np.testing.assert_array_equal(shifted, [5, 2])


def test_names_can_be_chosen(two_signatures, tmp_path):
    output = tmp_path / "out"
    report = export_saved_model(two_signatures, output, signatures=["shift=fast"])
    assert [(s.source, s.name) for s in report.signatures] == [("shift", "fast")]
    model = tf.saved_model.load(str(output))
    assert set(model.signatures) == {"serving_default", "shift", "fast"}
    shifted = model.signatures["fast"](x=tf.constant(COLUMNS["x"]))["shifted"]
    np.testing.assert_array_equal(shifted, [5, 2])


def test_new_signature_can_be_the_default(two_signatures, tmp_path):
    output = tmp_path / "out"
    export_saved_model(two_signatures, output, default="columnar")
    with served(output) as server:
        np.testing.assert_array_equal(server.run("serving_default", COLUMNS)["tripled"], [6, -3])
        former = server.run("serving_examples", {"examples": EXAMPLES})["tripled"]
    np.testing.assert_array_equal(former, [6, -3])
    python = tf.saved_model.load(str(output)).signatures
    scores = python["serving_default"](x=tf.constant(COLUMNS["x"]))["tripled"]
    np.testing.assert_array_equal(scores, [6, -3])
    former = python["serving_examples"](examples=tf.constant(EXAMPLES))["tripled"]
    np.testing.assert_array_equal(former, [6, -3])


def test_default_that_is_not_new(two_signatures, tmp_path):
    with pytest.raises(ExportError, match="'shift' is not a new signature; there are columnar"):
        export_saved_model(two_signatures, tmp_path / "out", default="shift")
    assert not (tmp_path / "out").exists()


def save_stack(folder: Path, names: list[str]) -> Path:
    """A model that returns its features, all doubled, in one tensor."""
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    spec = {name: tf.io.FixedLenFeature([], tf.float32) for name in names}

    def score(features):
        return {"all": tf.stack([features[name] * module.weight for name in names], axis=1)}

    return save_parser(folder, module, spec, score)


def test_feature_names_that_are_no_python_names(tmp_path):
    names = ["class/x", "user id", "1st", "class", "größe", "_x"]
    export_saved_model(save_stack(tmp_path / "model", names), tmp_path / "out")
    columns = {name: np.array([i], np.float32) for i, name in enumerate(names)}
    with served(tmp_path / "out") as server:
        scores = server.run("columnar", columns)["all"]
    np.testing.assert_array_equal(scores, [[0, 2, 4, 6, 8, 10]])
    python = tf.saved_model.load(str(tmp_path / "out")).signatures["columnar"]
    scores = python(**{name: tf.constant(value) for name, value in columns.items()})
    np.testing.assert_array_equal(scores["all"], [[0, 2, 4, 6, 8, 10]])


def test_names_that_tensorflow_takes_for_one_do_not_break_loading(tmp_path):
    names = ["user id", "user_id", "user/id"]
    export_saved_model(save_stack(tmp_path / "model", names), tmp_path / "out")
    python = tf.saved_model.load(str(tmp_path / "out")).signatures
    examples = tf.constant([example(**{"user id": 1.0, "user_id": 2.0, "user/id": 3.0})])
    np.testing.assert_array_equal(python["serving_default"](examples=examples)["all"], [[2, 4, 6]])
    columns = {name: np.array([i], np.float32) for i, name in enumerate(names)}
    with served(tmp_path / "out") as server:
        np.testing.assert_array_equal(server.run("columnar", columns)["all"], [[0, 2, 4]])


def test_python_sees_the_late_signature(embedded, tmp_path):
    export_saved_model(embedded, tmp_path / "out", user_features=["user_*"], late=True)
    python = tf.saved_model.load(str(tmp_path / "out")).signatures
    items = {"movie": tf.constant([3, 4], tf.int64), "numbers": tf.ones([2, 2])}
    user = {
        "user_age": tf.constant([25], tf.int64),
        "user_genres": tf.constant([[b"drama", b"opera"]]),
        "user_genres/length": tf.constant([2], tf.int64),
    }
    repeated = {name: tf.repeat(value, 2, axis=0) for name, value in user.items()}
    expected = python["columnar"](**repeated, **items)["scores"]
    late = python["columnar_late"](**user, **items)["scores"]
    np.testing.assert_allclose(late, expected, rtol=1e-5)
