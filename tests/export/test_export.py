"""Models of every kind and dtype answer as before, to the last bit; the record lists the files."""

import filecmp
import json
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.export.convert._features import DTYPES
from colcast.export.convert._folder import read_saved_model, variables_bytes
from colcast.export.convert._signature import add_columnar_signature
from colcast.export.report._report import SignatureReport
from colcast.export.trials._parity import Parity
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2

from ..models.examples import MODELS, NOT_RANKED
from ..server.conftest import Stubs
from ..waiting import wait_until
from .conftest import EXAMPLES, X, save, served


@pytest.fixture(scope="module")
def converted(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("converted") / "1"
    export_saved_model(embedded, output, user_features=["user_*"])
    return output


def meta_graph(folder: Path):
    proto = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    return proto.meta_graphs[0]


COLUMNS = {
    "user_age": np.array([25, 30, -1]),
    "user_genres": np.array(
        [[b"drama", b"western", b""], [b"", b"", b""], [b"opera", b"drama", b"drama"]], object
    ),
    "user_genres/length": np.array([2, 0, 3]),
    "movie": np.array([3, 49, 0]),
    "numbers": np.array([[1, 2], [0.5, -2], [0.5, -2]], np.float32),
}


def test_columns_score_as_examples(converted, embedded_examples):
    with served(converted) as model:
        expected = model.run("serving_default", {"examples": embedded_examples})
        scores = model.run("columnar", COLUMNS)
    np.testing.assert_array_equal(scores["scores"], expected["scores"])


def test_wider_padding_changes_nothing(converted):
    wide = np.full((3, 9), b"comedy", object)
    wide[:, :3] = COLUMNS["user_genres"]
    with served(converted) as model:
        expected = model.run("columnar", COLUMNS)["scores"]
        scores = model.run("columnar", {**COLUMNS, "user_genres": wide})["scores"]
    np.testing.assert_array_equal(scores, expected)


def test_length_beyond_the_column_is_an_error(converted):
    columns = {**COLUMNS, "user_genres/length": np.array([2, 4, 3])}
    with (
        served(converted) as model,
        pytest.raises(tf.errors.InvalidArgumentError, match="user_genres"),
    ):
        model.run("columnar", columns)


def test_a_ragged_list_of_negative_length_is_empty(tmp_path):
    spec = {"x": tf.io.RaggedFeature(tf.float32)}
    save(tmp_path / "model", spec, lambda f: 2.0 * f["x"].to_tensor()[:, 0])
    export_saved_model(tmp_path / "model", tmp_path / "out")
    columns = {"x": np.float32([[9, 9], [2, 3], [4, 9]]), "x/length": np.array([-1, 2, 1])}
    with served(tmp_path / "out") as model:
        (scores,) = model.run("columnar", columns).values()
    np.testing.assert_array_equal(scores, [0, 4, 8])


def test_signature_declares_rows_dtypes_and_defaults(converted):
    signature = meta_graph(converted).signature_def["columnar"]
    shapes = {
        name: tf.TensorShape(info.tensor_shape).as_list() for name, info in signature.inputs.items()
    }
    assert shapes == {
        "user_age": [None],
        "user_genres": [None, None],
        "user_genres/length": [None],
        "movie": [None],
        "numbers": [None, 2],
    }
    assert signature.inputs["user_genres"].dtype == tf.string.as_datatype_enum
    assert signature.inputs["user_genres/length"].dtype == tf.int64.as_datatype_enum
    assert signature.method_name == "tensorflow/serving/predict"
    assert set(signature.defaults) == {"user_age", "numbers", "user_genres", "user_genres/length"}
    np.testing.assert_array_equal(tf.make_ndarray(signature.defaults["user_age"]), [30])
    np.testing.assert_array_equal(tf.make_ndarray(signature.defaults["numbers"]), [[0.5, -2]])
    assert tf.make_ndarray(signature.defaults["user_genres"]).shape == (1, 0)
    assert tf.make_ndarray(signature.defaults["user_genres/length"]).tolist() == [0]


def test_padding_of_a_sequence_is_a_step_in_its_default(exported_report, tmp_path):
    spec = {
        "sevens": tf.io.FixedLenSequenceFeature([2], tf.float32, True, default_value=7.0),
        "zeros": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    }
    exported_report(
        spec, lambda f: tf.reduce_sum(f["sevens"], [1, 2]) + tf.reduce_sum(f["zeros"], 1)
    )
    defaults = meta_graph(tmp_path / "out").signature_def["columnar"].defaults
    assert set(defaults) == {"sevens", "zeros"}
    np.testing.assert_array_equal(tf.make_ndarray(defaults["sevens"]), [[[7, 7]]])
    assert tf.make_ndarray(defaults["zeros"]).shape == (1, 0)


def test_an_export_is_not_exported_again(converted, tmp_path):
    with pytest.raises(ExportError, match=f"^{converted} is an export already; export the orig"):
        export_saved_model(converted, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_original_graph_stays(embedded, converted):
    before, after = meta_graph(embedded), meta_graph(converted)
    for name, signature in before.signature_def.items():
        assert after.signature_def[name] == signature
    assert list(after.graph_def.node[: len(before.graph_def.node)]) == list(before.graph_def.node)
    assert after.saver_def == before.saver_def
    assert list(after.asset_file_def) == list(before.asset_file_def)
    ops = {node.op for node in after.graph_def.node if node.name.startswith("columnar/")}
    assert not ops & {"PartitionedCall", "StatefulPartitionedCall", "ParseExampleV2"}


def test_variables_and_assets_are_copied_as_they_are(embedded, converted):
    for folder in ("variables", "assets"):
        names = [path.name for path in (embedded / folder).iterdir()]
        assert names
        assert filecmp.cmpfiles(embedded / folder, converted / folder, names, shallow=False) == (
            names,
            [],
            [],
        )


def test_scores_that_are_sometimes_random_are_reported(exported_report):
    def score(features):
        explored = tf.random.uniform(tf.shape(features["x"])) < 0.1
        return tf.where(explored, -features["x"], features["x"])

    report = exported_report(X, score)
    assert report.parity.unstable == ("scores",)
    assert "not bit-identical" in report.not_transcoded


def test_a_check_of_the_batch_before_the_parse_is_reported(tmp_path):
    def serve(examples):
        five = tf.ensure_shape(tf.identity(examples), [5])
        return {"scores": 2.0 * tf.io.parse_example(five, X)["x"]}

    model = read_saved_model(save(tmp_path / "model", [EXAMPLES], serve))
    conversion = add_columnar_signature(model.meta_graphs[0], "serving_default", "columnar")
    report = SignatureReport.of(conversion, Parity(), {})
    assert "EnsureShape" in report.to_json()["example_transcoding"]


def test_name_that_is_not_utf_8(exported_report):
    spec = {b"caf\xe9": tf.io.FixedLenFeature([], tf.float32)}
    with pytest.raises(ExportError, match=r"caf.xe9.*is not valid UTF-8"):
        exported_report(spec, lambda f: f[b"caf\xe9"])


CONVERT = """
import resource, sys
import tensorflow as tf
from colcast.export import export_saved_model
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    session.run(tf.constant(1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export_saved_model(sys.argv[1], sys.argv[2], most_parity_bytes=1 << 20)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_variables_are_never_loaded(tmp_path):
    table = tf.Variable(tf.zeros([1 << 20, 64]))
    spec = {"id": tf.io.FixedLenFeature([], tf.int64)}
    save(tmp_path / "model", spec, lambda f: tf.gather(table, f["id"]), table)
    megabytes = variables_bytes(tmp_path / "model") >> 20
    assert megabytes >= 256
    command = [sys.executable, "-c", CONVERT, str(tmp_path / "model"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < megabytes / 4


RECORD = Path("assets.extra", "colcast.json")


@pytest.fixture(scope="module", name="exported")
def _exported(embedded, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "1"
    export_saved_model(embedded, folder, warmup=[2])
    return folder


def test_graph_and_assets_are_listed_but_not_added_or_trained_files(exported):
    files = json.loads((exported / RECORD).read_text())["files"]
    assets = [file for file in (exported / "assets").rglob("*") if file.is_file()]
    names = {file.relative_to(exported).as_posix() for file in assets}
    assert set(files) == names | {"saved_model.pb"}
    for name, listed in files.items():
        content = (exported / name).read_bytes()
        assert listed["bytes"] == len(content)
        assert listed["crc32"] == f"{zlib.crc32(content):08x}"


def test_a_vocabulary_that_is_not_whole_is_waited_for(exported, tmp_path) -> None:
    """Files may be copied in any order; a version serves until the next one is complete."""
    (vocabulary,) = (exported / "assets").iterdir()
    whole = vocabulary.read_bytes()
    half = whole[: len(whole) // 2]
    shutil.copytree(exported, tmp_path / "model" / "1")
    with ServerProcess("m", tmp_path / "model", ["--file_system_poll_wait_seconds=0.05"]) as server:
        stubs = Stubs(server.target, model="m")
        for version, damaged in enumerate((None, half, half.ljust(len(whole), b"\0")), 2):
            shutil.copytree(exported, tmp_path / "copy")
            copied = tmp_path / "copy" / "assets" / vocabulary.name
            copied.unlink() if damaged is None else copied.write_bytes(damaged)
            (tmp_path / "copy").rename(tmp_path / "model" / str(version))
            wait_until(lambda v=version: stubs.states().get(v, ("", 0, ""))[1] != 0)
            said = stubs.states()[version][2]
            assert f"{version}/assets/{vocabulary.name}" in said
            assert "the version is still being copied" in said
            assert stubs.states()[version - 1][0] == "AVAILABLE"
            (tmp_path / "model" / str(version) / "assets" / vocabulary.name).write_bytes(whole)
            wait_until(lambda v=version: stubs.states()[v][0] == "AVAILABLE")


def test_files_added_to_a_serving_version_are_reported(exported, tmp_path) -> None:
    shutil.copytree(exported, tmp_path / "model" / "1")
    shutil.move(tmp_path / "model" / "1" / RECORD, tmp_path)
    with ServerProcess("m", tmp_path / "model", ["--file_system_poll_wait_seconds=0.05"]) as server:
        shutil.move(tmp_path / RECORD.name, tmp_path / "model" / "1" / RECORD)
        wait_until(
            lambda: "version 1 serves as it was loaded, but files were added" in server.log()
        )


@pytest.mark.parametrize("model", [*MODELS, *NOT_RANKED], ids=lambda model: model.name)
def test_generated_and_recorded_examples_are_scored_to_the_last_bit(model, tmp_path):
    model.build(tmp_path / "model")
    recorded = tmp_path / "recorded"
    with tf.io.TFRecordWriter(str(recorded)) as writer:
        for example in model.examples(50, seed=1):
            writer.write(example)
    report = export_saved_model(tmp_path / "model", tmp_path / "out", examples=recorded)
    assert report.signatures[0].parity.identical
    assert report.signatures[0].parity.recorded_rows == 50


def number(column: Any) -> Any:
    """Casts a column [rows] to float32; a string becomes its length."""
    if column.dtype == tf.string:
        column = tf.strings.length(column)
    return tf.cast(column, tf.float32)


def test_the_export_takes_what_the_docs_list() -> None:
    page = Path(__file__).parents[2] / "docs" / "wire.md"
    table = page.read_text().partition("| dtype | number |")[2].partition("\n\n")[0]
    listed = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(listed))) == sorted(DTYPES)


def test_columns_of_each_dtype_are_scored_as_the_model_scores_them(exported_report: Any) -> None:
    def score(*columns: Any) -> Any:
        of_user, of_items = columns[: len(DTYPES)], columns[len(DTYPES) :]
        pairs = zip(map(number, of_user), map(number, of_items), strict=True)
        return {"scores": tf.add_n([tf.tanh(user * (1.0 + item) / 10) for user, item in pairs])}

    names = [(side, dtype) for side in ("user", "item") for dtype in DTYPES]
    takes = [tf.TensorSpec([None], dtype, f"{side}_{dtype}") for side, dtype in names]
    report = exported_report(takes, score, user_features=["user_*"], late=True, warmup=[2])
    assert {feature.name: feature.dtype for feature in report.features} == {
        f"{side}_{dtype}": dtype for side, dtype in names
    }
    assert report.parity.identical
    assert report.late.user_ops > 0
