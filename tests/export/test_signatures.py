"""Several signatures, their names and defaults, and models that are refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError, export_saved_model
from colcast.export.report._report import FILE
from colcast.zoo.saving import with_defaults

from .conftest import EXAMPLES, X, example, save, served

COLUMNS = {"x": np.array([2, -1], np.float32)}


@pytest.fixture(scope="module")
def two_signatures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two") / "model"
    module = tf.Module()
    module.weight = tf.Variable(3.0)

    @tf.function(input_signature=[EXAMPLES])
    def triple(examples):
        return {"tripled": tf.io.parse_example(examples, X)["x"] * module.weight}

    @tf.function(input_signature=[EXAMPLES])
    def shift(examples):
        return {"shifted": tf.io.parse_example(examples, X)["x"] + module.weight}

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
    export_saved_model(two_signatures, tmp_path / "out", signatures=["shift=fast"])
    model = tf.saved_model.load(str(tmp_path / "out"))
    assert set(model.signatures) == {"serving_default", "shift", "fast"}
    shifted = model.signatures["fast"](x=tf.constant(COLUMNS["x"]))["shifted"]
    np.testing.assert_array_equal(shifted, [5, 2])


def test_new_signature_can_be_the_default(two_signatures, tmp_path):
    output = tmp_path / "out"
    export_saved_model(two_signatures, output, default="columnar")
    with served(output) as server:
        scores = server.run("serving_default", COLUMNS)["tripled"]
    np.testing.assert_array_equal(scores, [6, -3])
    former = tf.saved_model.load(str(output)).signatures["serving_examples"]
    given = tf.constant([example(x=2.0), example(x=-1.0)])
    np.testing.assert_array_equal(former(examples=given)["tripled"], [6, -3])


def test_defaults_of_tensors_are_kept(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(3.0)
    takes = [tf.TensorSpec([None], tf.float32, name=name) for name in ("x", "y")]
    score = tf.function(lambda x, y: {"score": (x + y) * module.weight}, input_signature=takes)
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=score.get_concrete_function())
    with_defaults(tmp_path / "model", "serving_default", {"y": [0.5]})
    export_saved_model(tmp_path / "model", tmp_path / "out", warmup=[1])
    with served(tmp_path / "out") as model:
        defaults = model.meta_graph.signature_def["columnar"].defaults
    assert {name: tf.make_ndarray(value).tolist() for name, value in defaults.items()} == {
        "y": [0.5]
    }


def test_a_default_that_is_not_a_new_signature_is_refused(two_signatures, tmp_path):
    with pytest.raises(ExportError, match="'shift' is not a new signature; new ones are columnar"):
        export_saved_model(two_signatures, tmp_path / "out", default="shift")
    assert not (tmp_path / "out").exists()


def save_stack(folder: Path, names: list[str]) -> Path:
    """Saves a model that returns all its features, doubled, in one tensor."""
    spec = {name: tf.io.FixedLenFeature([], tf.float32) for name in names}
    return save(folder, spec, lambda f: {"all": 2.0 * tf.stack([f[n] for n in names], axis=1)})


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


def test_names_that_tensorflow_considers_equal_do_not_break_loading(tmp_path):
    names = ["user id", "user_id", "user/id"]
    export_saved_model(save_stack(tmp_path / "model", names), tmp_path / "out")
    python = tf.saved_model.load(str(tmp_path / "out")).signatures
    examples = tf.constant([example(**{"user id": 1.0, "user_id": 2.0, "user/id": 3.0})])
    np.testing.assert_array_equal(python["serving_default"](examples=examples)["all"], [[2, 4, 6]])
    columns = {name: np.array([i], np.float32) for i, name in enumerate(names)}
    with served(tmp_path / "out") as server:
        np.testing.assert_array_equal(server.run("columnar", columns)["all"], [[0, 2, 4]])


def refused(model: Path, output: Path, **options) -> str:
    with pytest.raises(ExportError) as caught:
        export_saved_model(model, output, **options)
    assert not output.exists()
    assert not list(output.parent.glob(f".{output.name}*"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"signatures": ["predict"]}, "'predict'.*serving_default"),
        ({"user_features": ["usr_*"]}, "'usr_\\*' matches no feature; .*user_age"),
        ({"late": True}, "--user-features"),
        ({"user_features": ["auto"]}, "--examples"),
        ({"warmup": [5, -3]}, "1 row or more, got -3"),
        ({"warmup": [0]}, "1 row or more, got 0"),
        ({"tolerance": -1.0}, "0 or more, got -1.0"),
        ({"tolerance": float("nan")}, "0 or more, got nan"),
        ({"tolerance": float("inf")}, "0 or more, got inf"),
        ({"table_type": "bfloat16"}, "--table-type bfloat16 was removed: use int8"),
        ({"examples": "nowhere.tfrecord"}, "nowhere.tfrecord is not a file"),
        ({"signatures": ["serving_default=serving_default"]}, "--signature serving_default=NEW"),
    ],
)
def test_options_that_cannot_be(embedded, tmp_path, options, expected):
    assert re.search(expected, refused(embedded, tmp_path / "out", **options))


def parsed_one_by_one(examples):
    def score(one):
        return tf.io.parse_single_example(one, X)["x"]

    return {"scores": tf.map_fn(score, examples, fn_output_signature=tf.float32)}


def parsed_and_measured(examples):
    lengths = tf.cast(tf.strings.length(examples), tf.float32)
    return {"scores": tf.io.parse_example(examples, X)["x"] + lengths}


CLASH = {"f": tf.io.VarLenFeature(tf.float32), "f/length": tf.io.FixedLenFeature([], tf.float32)}
REFUSED = {
    "examples parsed under map_fn": (
        [EXAMPLES], parsed_one_by_one, "tf.map_fn.*tf.io.parse_example",
    ),
    "serialized strings used elsewhere": (
        [EXAMPLES], parsed_and_measured, "StringLength.*reads the serialized",
    ),
    "column names that clash": (CLASH, lambda f: f["f/length"] * 2.0, "'f/length'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_columns_cannot_feed_is_refused(tmp_path, name):
    takes, score, message = REFUSED[name]
    model = save(tmp_path / "model", takes, score)
    assert re.search(message, refused(model, tmp_path / "out"), re.DOTALL)


def test_an_unknown_op(tmp_path):
    model = save(tmp_path / "model", X, lambda features: tf.math.lgamma(features["x"]))
    graph = model / "saved_model.pb"
    graph.write_bytes(graph.read_bytes().replace(b"Lgamma", b"Nobody"))
    message = refused(model, tmp_path / "out")
    assert "op 'Nobody' is not defined" in message
    assert "--op-library" in message


def test_output_that_is_not_empty(embedded, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    with pytest.raises(ExportError, match="out exists already"):
        export_saved_model(embedded, tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "keep me"


def test_base_path_instead_of_a_version(embedded, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "7").symlink_to(embedded)
    assert "versions (7)" in refused(tmp_path / "base", tmp_path / "out")


def test_command_line_prints_what_it_records_as_json(embedded, tmp_path, capsys):
    folders = ["--saved-model", str(embedded), "--output", str(tmp_path / "out")]
    assert main(["export", *folders, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.pop("saved_model") == str(embedded)
    assert shown.pop("output") == str(tmp_path / "out")
    recorded = json.loads((tmp_path / "out" / FILE).read_bytes())
    assert recorded.pop("files")
    assert shown == recorded


def test_command_line_reads_recorded_examples_from_standard_input(embedded, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "log")) as writer:
        writer.write(example(movie=3))
    folders = ["--saved-model", str(embedded), "--output", str(tmp_path / "out")]
    shown = subprocess.run(
        [sys.executable, "-m", "colcast.cli.main", "export", *folders, "--examples", "-", "--json"],
        input=(tmp_path / "log").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(shown.stdout)["signatures"]["columnar"]["parity"]["recorded_rows"] == 1
