"""Writes SavedModels with a tf.Example signature; adds defaults, warm-up requests and a record."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.warmup import EVERY_SERVER, warmup_request, write_warmup
from tensorflow.core.protobuf import saved_model_pb2

Outputs = dict[str, Any]  # output name -> tensor, rows first


def save(folder: Path, serve: Callable[[Any], Outputs], layers: Iterable[Any]) -> None:
    """Writes `serve` as the signature `serving_default`, from serialized tf.Examples to scores.

    Uses Keras's ExportArchive, because TensorFlow Serving does not find all variables of a Keras 3
    model written by a plain tf.saved_model.save.

    Args:
      folder: the folder of a version.
      serve: takes a string tensor [rows].
      layers: the Keras layers that `serve` uses.
    """
    archive = tf.keras.export.ExportArchive()
    for layer in layers:
        archive.track(layer)
    examples = tf.TensorSpec([None], tf.string, name="examples")
    archive.add_endpoint("serving_default", serve, input_signature=[examples])
    archive.write_out(str(folder), verbose=False)


def with_defaults(folder: Path, signature: str, defaults: Mapping[str, Any]) -> None:
    """Writes defaults for a signature's inputs, which tf.saved_model.save cannot write.

    Args:
      folder: the SavedModel's folder; changed in place.
      signature: the signature's name.
      defaults: input -> value.
    """
    path = folder / "saved_model.pb"
    saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    entry = saved_model.meta_graphs[0].signature_def[signature]
    for name, value in defaults.items():
        dtype = tf.dtypes.as_dtype(entry.inputs[name].dtype)
        entry.defaults[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    path.write_bytes(saved_model.SerializeToString(deterministic=True))


def with_warmup(
    folder: Path, signature: str, requests: Sequence[Mapping[str, Any]], outputs: Sequence[str]
) -> None:
    """Writes warm-up requests, which a server runs before it serves the model.

    Args:
      folder: the SavedModel's folder.
      signature: the signature's name.
      requests: for each request: input -> value.
      outputs: the requested outputs; a server prepares its graph for each new set of outputs.
    """
    saved_model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    entry = saved_model.meta_graphs[0].signature_def[signature]
    logs = [warmup_request(signature, one, entry, outputs) for one in requests]
    write_warmup(folder, EVERY_SERVER, logs)


def independent(*names: str) -> dict[str, Any]:
    """The record's `independence` entries for signatures with independent rows."""
    return {name: {"rows": True, "why_not": "", "own_length": []} for name in names}


def independent_rows(name: str) -> dict[str, Any]:
    """The record of a signature of tensors whose rows may be cached, joined and split.

    The last bits of a row may depend on the other rows of its run.
    """
    return {"source_input": None, "any_rounding": True, "independence": independent(name)}


def with_record(folder: Path, signatures: Mapping[str, Any]) -> None:
    """Writes the record into a SavedModel.

    Args:
      folder: the SavedModel's folder.
      signatures: name -> the signature's record.
    """
    extra = folder / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / "colcast.json").write_text(json.dumps({"signatures": signatures}))
