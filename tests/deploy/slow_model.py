"""A model that takes its time without a processor."""

from pathlib import Path

import tensorflow as tf


class _Slow(tf.Module):
    def __init__(self, milliseconds: int) -> None:
        super().__init__()
        self._microseconds = milliseconds * 500  # `TensorDataset` is asked for 2 elements

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def wait(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """x, after a while."""
        shapes = [[None]]
        rows = tf.raw_ops.TensorDataset(components=[x], output_shapes=shapes)
        slept = tf.raw_ops.ExperimentalSleepDataset(
            input_dataset=rows,
            sleep_microseconds=self._microseconds,
            output_types=[tf.float32],
            output_shapes=shapes,
        )
        (same,) = tf.raw_ops.DatasetToSingleElement(
            dataset=slept, output_types=[tf.float32], output_shapes=shapes
        )
        return {"score": same}


def save(directory: Path, milliseconds: int) -> None:
    """Writes a version that answers x after so many milliseconds."""
    module = _Slow(milliseconds)
    signatures = {"serving_default": module.wait, "columnar": module.wait}
    tf.saved_model.save(module, str(directory), signatures=signatures)
