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
from tensorflow.core.protobuf import saved_model_pb2
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
    return {"scores": tf.add_n([tf.reduce_sum(tf.cast(one, tf.float32)) for one in inputs])[None]}


PRICE = tf.TensorSpec([None, 1], tf.float32, "price")
TABLE = tf.constant(np.arange(20, dtype=np.float32).reshape(10, 2))
IDS = tf.TensorSpec([None], tf.int64)


def sparse(x: Any, price: Any) -> Any:
    return tf.sparse.sparse_dense_matmul(x, TABLE) + price


def ragged(h: Any, price: Any) -> Any:
    return tf.reduce_sum(tf.gather(TABLE, h), 1) + price


def by_rowids(ids: Any, rowids: Any, price: Any) -> Any:
    return tf.math.segment_sum(tf.gather(TABLE, ids), rowids) + price


def by_hand(where: Any, values: Any, price: Any) -> Any:
    x = tf.SparseTensor(tf.cast(where, tf.int64), values, [tf.shape(price, tf.int64)[0], 10])
    return tf.sparse.sparse_dense_matmul(x, TABLE) + price


def dense(user_id: Any, price: Any) -> Any:
    """Makes a sparse tensor of a dense column, which stays rows."""
    rows = tf.range(tf.shape(user_id, tf.int64)[0])
    ids = tf.SparseTensor(
        tf.stack([rows, tf.zeros_like(rows)], 1), user_id, [tf.shape(user_id, tf.int64)[0], 1]
    )
    return tf.nn.embedding_lookup_sparse(TABLE, ids, None) + price


PARTS = {  # of sparse or ragged tensors, by role
    "sparse": (
        sparse,
        [tf.SparseTensorSpec([None, 10], tf.float32), PRICE],
        "x: indices of a sparse feature; x_1: values of a sparse feature;"
        " x_2: shape of a sparse feature",
    ),
    "ragged": (
        ragged,
        [tf.RaggedTensorSpec([None, None], tf.int64, 1), PRICE],
        "h: values of a ragged feature; h_1: row splits of a ragged feature",
    ),
    "by rowids": (by_rowids, [IDS, IDS, PRICE], "rowids: segment ids"),
    "by hand": (
        by_hand,
        [tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None], tf.float32), PRICE],
        "values: values of a sparse feature; where: indices of a sparse feature",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_sparse_and_ragged_tensors_are_refused_by_role(name: str, tmp_path: Path) -> None:
    score, specs, roles = PARTS[name]
    model = save(tmp_path / "model", specs, score)
    with pytest.raises(ExportError) as refused:
        export_saved_model(model, tmp_path / "out", user_features=["price"], late=True)
    assert f"({roles})" in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_sparse_tensor_made_of_a_dense_column_is_no_part(tmp_path: Path) -> None:
    """The model was saved on a machine with a GPU."""
    path = save(tmp_path / "model", [IDS, PRICE], dense)
    proto = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    for function in proto.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            node.device = "/device:GPU:0" if node.op in ("GatherV2", "AddV2") else ""
    (path / "saved_model.pb").write_bytes(proto.SerializeToString())
    (report,) = export_saved_model(
        path, tmp_path / "out", user_features=["user_id"], late=True
    ).signatures
    assert [feature.name for feature in report.features] == ["price", "user_id"]
    with served(tmp_path / "out") as model:
        assert not any("GPU" in node.device for node in model.meta_graph.graph_def.node)


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
