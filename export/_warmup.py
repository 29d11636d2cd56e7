"""Warm-up requests: servers run them when they load a model, before real ones come."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export._serving_messages import PredictionLog

FILE = Path("assets.extra", "tf_serving_warmup_requests")


def warmup_request(signature: str, inputs: Mapping[str, Any], signature_def: Any) -> Any:
    """Returns a PredictionLog of one request.

    Args:
      signature: the signature's name.
      inputs: arrays by input.
      signature_def: tells the inputs' dtypes.
    """
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        dtype = tf.dtypes.as_dtype(signature_def.inputs[name].dtype)
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    return log


def write_warmup(folder: Path, logs: Sequence[Any]) -> None:
    """Adds requests to a SavedModel folder, behind those that it has."""
    file = folder / FILE
    file.parent.mkdir(exist_ok=True)
    present = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator()) if file.exists() else []
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in [*present, *(log.SerializeToString(deterministic=True) for log in logs)]:
            writer.write(record)
