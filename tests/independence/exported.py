"""A model of the registry, exported, and the original to compare with."""

import copy
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export import ExportReport, export_saved_model
from colcast.export.convert._variables import fill_variables
from tensorflow.core.protobuf import saved_model_pb2

from ..models import RankingModel
from ..models._model import Row
from ..models.saving import serialized

WITH_LENGTHS = ("var_len", "ragged")
"""Kinds of list features whose columns have lengths."""

v1 = tf.compat.v1
Columns = dict[str, Any]
Outputs = dict[str, Any]


class Exported:
    """An exported model of the registry.

    `record` is the entry of its only columnar signature in colcast.json.
    """

    def __init__(self, model: RankingModel, folder: Path) -> None:
        """Saves and exports the model below a separate folder."""
        self.model = model
        self.base_path = folder / model.name
        self._original = folder / "model"
        folder.mkdir(parents=True, exist_ok=True)
        model.build(self._original)
        self.report: ExportReport = export_saved_model(
            self._original,
            self.base_path / "1",
            signatures=[model.signature],
            user_features=model.user,
            late=True,
            exact="always",  # "auto" depends on the machine's load
            examples=self._recorded(folder / "recorded") if model.recorded else None,
        )
        written = json.loads((self.base_path / "1/assets.extra/colcast.json").read_text())
        self.record: dict[str, Any] = written["signatures"]["columnar"]

    def _recorded(self, file: Path) -> Path:
        draw = np.random.default_rng(4)
        with tf.io.TFRecordWriter(str(file)) as writer:
            for example in examples_of([self.model.draw(draw) for _ in range(64)]):
                writer.write(example)
        return file

    def user_features(self) -> set[str]:
        return {name for name, f in self.record["features"].items() if f["side"] == "user"}

    def columns(self, rows: Sequence[Row], names: set[str] | None = None) -> Columns:
        """Converts rows to columns, of all features or only of those in `names`."""
        columns: Columns = {}
        for name, feature in self.record["features"].items():
            if names is None or name in names:
                columns |= _columns_of(name, feature, [row.get(name) for row in rows])
        return columns

    def retrained(self, folder: Path) -> "Exported":
        """The export with another model's variables, and that model as the original.

        The base path has the current version 1; the retrained version is in `folder` / "2".
        """
        other = copy.copy(self)
        other.base_path, other._original = folder / self.model.name, folder / "model"
        folder.mkdir(exist_ok=True)
        shutil.copytree(self._original, other._original)
        draw = np.random.default_rng(9)
        rows = [self.model.draw(draw) for _ in range(20)]
        before = self.original().score(rows)
        has_variables = (self._original / "variables/variables.index").exists()
        for seed in range(20 * has_variables):  # some weights leave all scores as they are
            retrain(self._original / "variables", other._original / "variables", seed)
            if difference(before, other.original().score(rows)) > 0.05:
                break
        shutil.copytree(self.base_path / "1", other.base_path / "1")
        shutil.copytree(self.base_path / "1", folder / "2")
        shutil.copytree(other._original / "variables", folder / "2/variables", dirs_exist_ok=True)
        return other

    def original(self) -> "Original":
        """Loads the model as it was before the export."""
        return Original(self, self._original)


class Original:
    """Scores rows with the model as it was before the export.

    Uses a session, like TensorFlow Serving: a function called from Python does not know the model's
    constants, so it divides by them, where a session multiplies by their reciprocals. The session
    uses the executor that the server prefers, which runs loops as functions; oneDNN does not
    rewrite products inside them.
    """

    def __init__(self, exported: Exported, folder: Path) -> None:
        self._exported = exported
        self._folder = folder
        _mend(folder / "saved_model.pb")
        self._load("SINGLE_THREADED_EXECUTOR")

    def score(self, rows: Sequence[Row]) -> Outputs:
        """The original's outputs for these rows."""
        inputs = self._signature.inputs
        if self._exported.model.parses:
            (name,) = inputs
            columns: Columns = {name: examples_of(rows)}
        else:
            columns = self._exported.columns(rows)
        try:
            return self._run(columns)
        except tf.errors.OpError as error:
            if "Single-threaded executor does not support" not in error.message:
                raise
            self._load("DEFAULT")
            return self._run(columns)

    def assign(self, table: str, ids: Any, vectors: Any) -> None:
        """Assigns new values to rows of a variable."""
        with self._session.graph.as_default():
            (handle,) = (
                op.outputs[0]
                for op in self._session.graph.get_operations()
                if op.type == "VarHandleOp" and op.get_attr("shared_name") == table.encode()
            )
            update = tf.raw_ops.ResourceScatterUpdate(resource=handle, indices=ids, updates=vectors)
        self._session.run(update)

    def _load(self, executor: str) -> None:
        config = v1.ConfigProto(experimental={"executor_type": executor})
        self._session = v1.Session(graph=tf.Graph(), config=config)
        with self._session.graph.as_default():
            meta_graph = v1.saved_model.load(self._session, ["serve"], str(self._folder))
        self._signature = meta_graph.signature_def[self._exported.model.signature]

    def _run(self, columns: Columns) -> Outputs:
        outputs: Outputs = self._session.run(
            {name: info.name for name, info in self._signature.outputs.items()},
            {info.name: columns[name] for name, info in self._signature.inputs.items()},
        )
        return outputs


def difference(expected: Outputs, given: Outputs) -> float:
    """The largest difference in any output, relative to its largest value; inf if forms differ."""
    if expected.keys() != given.keys():
        return float("inf")
    return max((_difference(expected[name], given[name]) for name in expected), default=0.0)


def _difference(expected: Any, given: Any) -> float:
    expected, given = np.asarray(expected), np.asarray(given)
    if expected.shape != given.shape or expected.dtype != given.dtype:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(expected, given) else float("inf")
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(expected.astype(float) - given))
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-6)
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0) / largest)


def retrain(variables: Path, output: Path, seed: int) -> None:
    """Changes every float of a checkpoint; variances stay positive."""
    random = np.random.default_rng(seed)
    checkpoint = tf.train.load_checkpoint(str(variables / "variables"))
    tensors = {name: checkpoint.get_tensor(name) for name in checkpoint.get_variable_to_shape_map()}
    for name, value in tensors.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            moved = value * random.uniform(0.5, 1.5, value.shape)
            tensors[name] = (moved + 0.1 * random.random(value.shape)).astype(value.dtype)
    for file in output.iterdir():
        file.unlink()
    tf.raw_ops.SaveV2(
        prefix=str(output / "variables"),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )


def _mend(path: Path) -> None:
    """Makes the model restore all variables that a signature reads; Keras 3 models may not."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    fill_variables(model.meta_graphs[0])
    path.write_bytes(model.SerializeToString())


def examples_of(rows: Sequence[Row]) -> Any:
    """The rows as serialized tf.Examples."""
    examples = np.empty(len(rows), object)
    examples[:] = [serialized({name: _bytes(v) for name, v in row.items()}) for row in rows]
    return examples


def _bytes(values: Sequence[Any]) -> list[Any]:
    return [value.encode() if isinstance(value, str) else value for value in values]


def _columns_of(name: str, feature: dict[str, Any], values: Sequence[Any]) -> Columns:
    """Converts a feature to its columns: lists padded at the end, and lengths if it has any."""
    is_text = feature["dtype"] == "string"
    shape, dtype = feature["shape"], np.dtype(object if is_text else feature["dtype"])
    empty = b"" if is_text else dtype.type(0).item()
    default = [_value(v) for v in feature["default"] or ()]
    if feature["kind"] == "fixed_len":
        filled = [_bytes(default if row is None else row) for row in values]
        return {name: _array(filled, dtype).reshape(len(values), *shape)}
    lists = [_bytes(row or ()) for row in values]
    longest = max(map(len, lists), default=0)
    padding = default[0] if default else empty
    padded = [[*row, *[padding] * (longest - len(row))] for row in lists]
    size = int(np.prod(shape, dtype=int))
    columns = {name: _array(padded, dtype, longest).reshape(len(values), longest // size, *shape)}
    if feature["kind"] in WITH_LENGTHS:
        columns[f"{name}/length"] = np.array([len(row) for row in lists], np.int64)
    return columns


def _array(rows: Sequence[Sequence[Any]], dtype: Any, width: int | None = None) -> Any:
    width = len(rows[0]) if width is None else width
    array = np.empty((len(rows), width), dtype)
    for number, row in enumerate(rows):
        array[number] = row
    return array


def _value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
