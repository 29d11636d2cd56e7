"""Writes SavedModels, and rows as tf.Examples."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def save_version(directory: Path, module: tf.Module, signatures: Any) -> None:
    """Saves a version of a model; a rename makes it appear only when it is complete."""
    beside = directory.with_name(directory.name + ".tmp")
    tf.saved_model.save(module, str(beside), signatures=signatures)
    beside.rename(directory)


def save_parser(
    folder: Path, module: tf.Module, spec: Mapping[str, Any], score: Callable[[Any], Any]
) -> Path:
    """Saves a model whose only signature parses tf.Examples according to `spec`.

    Args:
      folder: the version's folder.
      module: keeps the variables that `score` reads.
      spec: feature -> how it is read.
      score: parsed features -> outputs by name, or the output `scores`.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples: Any) -> Any:
        found = score(tf.io.parse_example(examples, spec))
        return found if isinstance(found, dict) else {"scores": found}

    tf.saved_model.save(module, str(folder), signatures=serve)
    return folder


def save_graph(folder: Path, session: Any, signatures: Mapping[str, Any], **options: Any) -> None:
    """Saves a TensorFlow 1 graph and its variables' values; `options` go to the builder."""
    builder = v1.saved_model.Builder(str(folder))
    builder.add_meta_graph_and_variables(session, ["serve"], signatures, **options)
    builder.save()


def serialized(row: Mapping[str, Any]) -> bytes:
    """A row as a tf.Example; a feature is an int, float, text or bytes, or a list of them."""
    proto = tf.train.Example()
    for name, value in row.items():
        values = value if isinstance(value, list) else [value]
        feature = proto.features.feature[name]
        if values and isinstance(values[0], str | bytes):
            feature.bytes_list.value.extend(map(tf.compat.as_bytes, values))
        elif values and isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif values:
            feature.int64_list.value.extend(values)
    return bytes(proto.SerializeToString())
