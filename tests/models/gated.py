"""Models whose runs wait for the test: they read a file, and opening a pipe waits."""

import os
from pathlib import Path

import tensorflow as tf

v1 = tf.compat.v1


class Gate:
    """A pipe. A run that reads it waits until the test opens it, and then fails."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path

    def is_reached(self) -> bool:
        """Whether a run is waiting, or about to."""
        return self.path.with_name(self.path.name + ".reached").exists()

    def open(self) -> None:
        """Lets the run continue, once it waits."""
        self.path.write_bytes(b"")


def pass_gate(path: tf.Tensor) -> tf.Tensor:
    """The length of the file, 0."""
    with tf.control_dependencies([tf.io.write_file(tf.strings.join([path, ".reached"]), "")]):
        return tf.cast(tf.strings.length(tf.io.read_file(path)), tf.float32)
