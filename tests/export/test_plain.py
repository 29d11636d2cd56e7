"""Signatures that take plain tensors: the user's part once, the three stages, the native server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError, export_saved_model
from tensorflow_serving.apis import prediction_log_pb2

from ..models.plain import MODELS, repeated, request
from .conftest import save, served

STAGES = {"columnar_user", "columnar_item", "columnar_pair"}


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the originals, `NAME/model`, and their exports, `NAME/served/1`."""
    folder = tmp_path_factory.mktemp("plain")
    for name, (build, signature) in MODELS.items():
        build(folder / name / "model")
        export_saved_model(
            folder / name / "model",
            folder / name / "served" / "1",
            signatures=[signature],
            user_features=["user_*"],
            late=True,
            exact="always",
            warmup=[3],
        )
    return folder


def expected(folder: Path, name: str, columns: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """The original model's answer in TensorFlow, with the user on every row."""
    loaded = tf.saved_model.load(str(folder / name / "model")).signatures[MODELS[name][1]]
    named = {k: tf.constant(v) for k, v in repeated(dict(columns), rows).items()}
    return {key: value.numpy() for key, value in loaded(**named).items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_new_signature_gives_what_the_model_gave(exported: Path, name: str) -> None:
    requests = {rows: request(name, rows, seed=rows) for rows in (1, 2, 9)}
    answers = {rows: expected(exported, name, c, rows) for rows, c in requests.items()}
    with served(exported / name / "served" / "1") as model:
        for rows, columns in requests.items():
            wanted = answers[rows]
            signatures = {"columnar": repeated(columns, rows), "columnar_late": columns}
            if "columnar_exact" in model.meta_graph.signature_def:
                signatures["columnar_exact"] = columns
            for signature, inputs in signatures.items():
                given = model.run(signature, inputs)
                assert given.keys() == wanted.keys()
                for output, value in wanted.items():
                    np.testing.assert_allclose(given[output], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_three_stages_are_written_where_every_input_has_rows(exported: Path, name: str) -> None:
    record = json.loads((exported / name / "served/1/assets.extra/colcast.json").read_text())
    stages = record["signatures"]["columnar"]["parts"]
    if name == "module":
        assert stages["reason"] == "input 'temperature' has no rows"
    else:
        assert set(stages["signatures"]) == STAGES
        assert stages["users_per_run"] == "many"


def test_recorded_requests_are_compared_and_reveal_the_user(exported: Path, tmp_path: Path) -> None:
    file = tmp_path / "requests.tfrecord"
    with tf.io.TFRecordWriter(str(file)) as writer:
        several = {"row_to_user": np.zeros(4, np.int64)}
        prefetch = {"item": np.zeros([0], np.int32)}
        for seed, more in enumerate([{}, {}, {}, {}, {}, {}, several, prefetch]):
            columns = request("functional", 4, seed % 3) | more
            log = prediction_log_pb2.PredictionLog()
            for name, column in columns.items():
                tensor = tf.make_tensor_proto(column)
                log.predict_log.request.inputs[name].CopyFrom(tensor)
            writer.write(log.SerializeToString())
    report = export_saved_model(
        exported / "functional" / "model",
        tmp_path / "out",
        user_features=["auto"],
        late=True,
        examples=file,
    )
    (signature,) = report.signatures
    sides = {feature.name: str(feature.side) for feature in signature.features}
    assert sides["user_history"] == sides["user_vector"] == "user"
    assert sides["item"] == sides["price"] == "item"
    assert signature.parity.recorded_rows == 24
    assert report.unused_requests == {"of several users": 1, "without candidates": 1}
    assert signature.stages is not None
    assert signature.stages.reuse is not None
    assert signature.stages.reuse.users_found == 3


def test_the_record_says_that_nothing_is_parsed(exported: Path, capsys: Any) -> None:
    folder = exported / "functional" / "served" / "1"
    recorded = json.loads((folder / "assets.extra" / "colcast.json").read_bytes())
    assert recorded["signatures"]["columnar"]["source_input"] is None
    assert recorded["signatures"]["columnar"]["features"]["item"]["dtype"] == "int32"
    assert main(["inspect", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "columnar is bit-identical on 200 generated rows" in " ".join(printed.split())


def added_up(*inputs: Any) -> Any:
    """The sum of all inputs."""
    flat = [one.to_tensor() if hasattr(one, "to_tensor") else one for one in inputs]
    return {"scores": tf.add_n([tf.reduce_sum(tf.cast(one, tf.float32)) for one in flat])[None]}


REFUSED = {
    "unknown rank": (
        [tf.TensorSpec(None, tf.float32, "user_x"), tf.TensorSpec([None], tf.float32, "y")],
        "input 'user_x' of signature 'serving_default' is float32 <unknown>: its rank is unknown",
    ),
    "two open dimensions": (
        [tf.TensorSpec([None, 2, None], tf.float32, "user_x"), tf.TensorSpec([None], name="y")],
        "(None, 2, None): besides the rows, only the next dimension",
    ),
    "complex": (
        [tf.TensorSpec([None], tf.complex64, "user_x"), tf.TensorSpec([None], name="y")],
        "complex64 (None,), expected one of int8",
    ),
    "no rows": (
        [tf.TensorSpec([3], tf.float32, "user_x"), tf.TensorSpec([], tf.float32, "y")],
        "has one row per candidate, [None, ...]; it takes whole float32 [3], whole float32 []",
    ),
    "ragged": (
        [tf.RaggedTensorSpec([None, None], tf.float32), tf.TensorSpec([None], name="y")],
        "row splits of a ragged feature",
    ),
    "rows that are added up": (
        [tf.TensorSpec([None], tf.float32, "user_x"), tf.TensorSpec([None], tf.float32, "y")],
        "no output has one row per candidate: for 5 rows, shapes are 'scores' [1]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_inputs_that_no_columnar_request_can_carry_are_refused(name: str, tmp_path: Path) -> None:
    specs, message = REFUSED[name]
    model = save(tmp_path / "model", specs, added_up)
    with pytest.raises(ExportError) as caught:
        export_saved_model(model, tmp_path / "out", user_features=["[ui]*"], late=True)
    assert message in str(caught.value)


def test_without_late_there_is_nothing_to_convert(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"already takes tensors \('item', .*: serve it as it is"):
        export_saved_model(exported / "functional" / "model", tmp_path / "out")


def test_inputs_named_like_lengths_belong_to_their_own_domains(
    exported_report: Any, tmp_path: Path
) -> None:
    names = ("user_x", "user_x/length", "shop_x", "shop_x/length")
    weights = tf.Variable(tf.random.stateless_uniform([64, 64], [1, 2]))

    def score(*inputs: Any) -> Any:
        towers = [tf.matmul(tf.tanh(tf.matmul(x, weights)), weights) for x in inputs]
        return {"scores": tf.reduce_sum(tf.add_n(towers), 1)}

    takes = [tf.TensorSpec([None, 64], name=name) for name in names]
    options = {"user_features": ["user_x"], "domains": {"shop": ["shop_x"]}, "late": True}
    report = exported_report(takes, score, weights, **options)
    assert report.late.user_features == ("user_x",)
    stage = tf.saved_model.load(str(tmp_path / "out")).signatures["columnar_shop"]
    assert set(stage.structured_input_signature[1]) == {"shop_x"}
