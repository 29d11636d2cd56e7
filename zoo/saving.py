"""How the zoo's Keras models become SavedModels, with the signature teams serve today."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf

Outputs = dict[str, Any]  # output name -> tensor, rows first


def save(folder: Path, serve: Callable[[Any], Outputs], layers: Iterable[Any]) -> None:
    """Writes `serve` as the signature `serving_default`: serialized tf.Examples in, scores out.

    Keras's own archive does it: of a plain tf.saved_model.save, TensorFlow Serving does not find
    all variables of a Keras 3 model.

    Args:
      folder: what a server calls a version.
      serve: takes a string tensor [rows].
      layers: the Keras layers `serve` uses.
    """
    archive = tf.keras.export.ExportArchive()
    for layer in layers:
        archive.track(layer)
    examples = tf.TensorSpec([None], tf.string, name="examples")
    archive.add_endpoint("serving_default", serve, input_signature=[examples])
    archive.write_out(str(folder), verbose=False)
