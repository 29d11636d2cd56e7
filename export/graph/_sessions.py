"""Sessions that models are tried in."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"  # as the native server runs the models that it takes


def session_config(executor: str = "") -> Any:
    """One thread, so that the same graph gives the same bits.

    A process has one pool for the work inside ops: its first session decides how many threads.
    """
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, device_count={"GPU": 0}
    )
    config.experimental.executor_type = executor
    return config


@contextmanager
def loaded(folder: Path, tags: Sequence[str], executor: str = "") -> Iterator[Any]:
    """A session in which a SavedModel is loaded: graph, variables, tables.

    Args:
      folder: holds saved_model.pb.
      tags: of the MetaGraph.
      executor: TensorFlow's name of what walks the graph; its default one, if empty.
    """
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=session_config(executor)) as session,
    ):
        tf.compat.v1.saved_model.loader.load(session, list(tags), str(folder))
        yield session
