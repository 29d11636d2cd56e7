"""Inputs that are parts of sparse or ragged tensors are refused by role; a model saved on a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.export._plan import plan_export
from tensorflow.core.protobuf import saved_model_pb2

from .conftest import save, served

PRICE = tf.TensorSpec([None, 1], tf.float32, "price")
TABLE = tf.constant(np.arange(20, dtype=np.float32).reshape(10, 2))


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


IDS = tf.TensorSpec([None], tf.int64)
REFUSED = {
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
    "by_rowids": (by_rowids, [IDS, IDS, PRICE], "rowids: segment ids"),
    "by_hand": (
        by_hand,
        [tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None], tf.float32), PRICE],
        "values: values of a sparse feature; where: indices of a sparse feature",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parts_are_refused_by_role(tmp_path: Path, name: str) -> None:
    run, specs, roles = REFUSED[name]
    model = save(tmp_path / "model", specs, run)
    for export in (
        lambda: export_saved_model(model, tmp_path / "out", user_features=["price"], late=True,
                                   signatures=["serving_default"]),
        lambda: plan_export(model, ["serving_default"]),
    ):  # fmt: skip
        with pytest.raises(ExportError) as refused:
            export()
        assert f"({roles})" in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_sparse_tensor_made_of_a_dense_column_is_no_part(tmp_path: Path) -> None:
    model = save(tmp_path / "model", [tf.TensorSpec([None], tf.int64), PRICE], dense)
    plan = plan_export(model, ["serving_default"])
    assert [f.name for f in plan.signatures[0].features] == ["price", "user_id"]


def test_a_model_saved_on_a_machine_with_a_gpu_is_exported(tmp_path: Path) -> None:
    specs = [tf.TensorSpec([None], tf.int64), PRICE]
    path = save(tmp_path / "model", specs, lambda user_id, price: tf.gather(TABLE, user_id) + price)
    proto = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    for function in proto.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            node.device = "/device:GPU:0" if node.op in ("GatherV2", "AddV2") else ""
    (path / "saved_model.pb").write_bytes(proto.SerializeToString())
    export_saved_model(
        path, tmp_path / "out", signatures=["serving_default"], user_features=["user_id"], late=True
    )
    with served(tmp_path / "out") as model:
        assert not any("GPU" in node.device for node in model.meta_graph.graph_def.node)
