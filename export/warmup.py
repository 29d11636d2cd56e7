"""Warm-up requests, which servers run after loading a model and before real requests arrive.

Requests with the user as one row are in a separate file, which only the native server reads. With
batching, TensorFlow Serving refuses requests whose inputs have different numbers of rows, and it
does not load a model whose warm-up requests fail.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.client.messages import new
from colcast.export.trials._traffic import records

EVERY_SERVER = Path("assets.extra", "tf_serving_warmup_requests")
NATIVE_SERVER = Path("assets.extra", "colcast_warmup_requests")


def warmup_request(
    signature: str, inputs: Mapping[str, Any], signature_def: Any, outputs: Sequence[str] = ()
) -> Any:
    """Returns a PredictionLog of one request.

    Args:
      signature: the signature's name.
      inputs: arrays by input.
      signature_def: the SignatureDef, which has the inputs' dtypes.
      outputs: the requested outputs; empty for all.
    """
    log = new("PredictionLog")
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    request.output_filter.extend(outputs)
    for name, value in inputs.items():
        dtype = tf.dtypes.as_dtype(signature_def.inputs[name].dtype)
        tensor = tf.make_tensor_proto(value, dtype)
        request.inputs[name].MergeFromString(tensor.SerializeToString())
    return log


def write_warmup(folder: Path, file: Path, logs: Sequence[Any]) -> None:
    """Appends requests to a file of a SavedModel folder."""
    if not logs:
        return
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    present = list(records(path)) if path.exists() else []
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in [*present, *(log.SerializeToString(deterministic=True) for log in logs)]:
            writer.write(record)
