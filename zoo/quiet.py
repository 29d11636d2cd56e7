"""Keeps TensorFlow's notes about itself out of what a demo prints; its errors still come."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf


def quieten_tensorflow() -> None:
    """To be called once, before the first graph runs: that one notes that it has no MLIR."""
    tf.get_logger().setLevel("ERROR")
    with _no_stderr(), tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.constant(0))


@contextmanager
def _no_stderr() -> Iterator[None]:
    """C++ writes past sys.stderr, so the descriptor itself is turned away."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
