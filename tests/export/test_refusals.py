"""What cannot be converted is refused: the message names the culprit, nothing is written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError, export_saved_model
from colcast.export.report._report import FILE

from ..models.saving import save_parser


def refused(model: Path, output: Path, **options) -> str:
    with pytest.raises(ExportError) as caught:
        export_saved_model(model, output, **options)
    assert not output.exists()
    assert not list(output.parent.glob(f".{output.name}*"))
    return str(caught.value)


def test_unknown_signature(embedded, tmp_path):
    message = refused(embedded, tmp_path / "out", signatures=["predict"])
    assert "'predict'" in message
    assert "serving_default" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"late": True}, "--user-features"),
        ({"user_features": ["auto"]}, "--examples"),
        ({"warmup": [5, -3]}, "1 row or more, got -3"),
        ({"warmup": [0]}, "1 row or more, got 0"),
        ({"tolerance": -1.0}, "0 or more, got -1.0"),
        ({"tolerance": float("nan")}, "0 or more, got nan"),
        ({"examples": "nowhere.tfrecord"}, "nowhere.tfrecord is not a file"),
        ({"signatures": ["serving_default=serving_default"]}, "--signature serving_default=NEW"),
    ],
)
def test_options_that_cannot_be(embedded, tmp_path, options, expected):
    assert expected in refused(embedded, tmp_path / "out", **options)


def test_single_examples_under_map_fn(tmp_path):
    module = tf.Module()
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        return {
            "scores": tf.map_fn(
                lambda one: tf.io.parse_single_example(one, spec)["x"],
                examples,
                fn_output_signature=tf.float32,
            )
        }

    tf.saved_model.save(module, str(tmp_path / "model"), signatures=serve)
    message = refused(tmp_path / "model", tmp_path / "out")
    assert "tf.map_fn" in message
    assert "tf.io.parse_example" in message


def test_an_op_that_nobody_has(tmp_path):
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}
    model = save_parser(
        tmp_path / "model", tf.Module(), spec, lambda features: tf.math.lgamma(features["x"])
    )
    graph = model / "saved_model.pb"
    graph.write_bytes(graph.read_bytes().replace(b"Lgamma", b"Nobody"))
    message = refused(model, tmp_path / "out")
    assert "op 'Nobody' is not defined" in message
    assert "--op-library" in message


def test_serialized_string_used_elsewhere(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples):
        lengths = tf.cast(tf.strings.length(examples), tf.float32)
        return {"scores": tf.io.parse_example(examples, spec)["x"] * module.weight + lengths}

    tf.saved_model.save(module, str(tmp_path / "model"), signatures=serve)
    assert re.search(
        r"StringLength.*reads the serialized", refused(tmp_path / "model", tmp_path / "out")
    )


def test_column_names_that_clash(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    spec = {
        "f": tf.io.VarLenFeature(tf.float32),
        "f/length": tf.io.FixedLenFeature([], tf.float32),
    }
    save_parser(tmp_path / "model", module, spec, lambda f: f["f/length"] * module.weight)
    assert "'f/length'" in refused(tmp_path / "model", tmp_path / "out")


def test_user_pattern_that_matches_nothing(embedded, tmp_path):
    message = refused(embedded, tmp_path / "out", user_features=["usr_*"])
    assert "'usr_*'" in message
    assert "user_age" in message


def test_output_that_is_not_empty(embedded, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    with pytest.raises(ExportError, match="out is there already"):
        export_saved_model(embedded, tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "keep me"


def test_base_path_instead_of_a_version(embedded, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "7").symlink_to(embedded)
    assert "versions (7)" in refused(tmp_path / "base", tmp_path / "out")


def test_command_line_prints_the_reason_and_exits_1(tmp_path, capsys):
    code = main(
        ["export", "--saved-model", str(tmp_path / "none"), "--output", str(tmp_path / "out")]
    )
    assert code == 1
    assert f"colcast export: {tmp_path / 'none'}: no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("verbose", [False, True])
def test_command_line_prints_a_verdict_and_features_when_asked_to(
    embedded, tmp_path, capsys, verbose
):
    folders = ["--saved-model", str(embedded), "--output", str(tmp_path / "out")]
    more = ["--verbose"] if verbose else []
    assert main(["export", *folders, "--user-features", "user_*", *more]) == 0
    printed = capsys.readouterr().out
    assert "the same bits" in printed
    assert ("user_genres" in printed) == verbose


def test_command_line_prints_what_it_records_as_json(embedded, tmp_path, capsys):
    folders = ["--saved-model", str(embedded), "--output", str(tmp_path / "out")]
    assert main(["export", *folders, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("saved_model") == str(embedded)
    assert told.pop("output") == str(tmp_path / "out")
    recorded = json.loads((tmp_path / "out" / FILE).read_bytes())
    assert recorded.pop("files")
    assert told == recorded


def test_command_line_reads_recorded_examples_from_standard_input(embedded, tmp_path):
    serialized = tf.train.Example(
        features=tf.train.Features(
            feature={"movie": tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))}
        )
    ).SerializeToString()
    with tf.io.TFRecordWriter(str(tmp_path / "log")) as writer:
        writer.write(serialized)
    folders = ["--saved-model", str(embedded), "--output", str(tmp_path / "out")]
    told = subprocess.run(
        [sys.executable, "-m", "colcast.cli.main", "export", *folders, "--examples", "-", "--json"],
        input=(tmp_path / "log").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(told.stdout)["signatures"]["columnar"]["parity"]["recorded_rows"] == 1
