"""Runs tensors of a signature in a session, including tensors inside its graph."""

from collections.abc import Iterable, Mapping
from functools import partial

import tensorflow as tf
from colcast.export.graph._comparison import comparable
from colcast.export.graph._errors import ExportError, TooLongError
from colcast.export.graph._sessions import Array, Columns, Run, describe_loops

_FIRST_RUN_SECONDS = 60  # includes TensorFlow's preparation of the graph
_RUN_SECONDS = 20  # for later runs; a loop may never end on some generated rows


class Probe:
    """Runs tensors of a signature in a session.

    Attributes:
        names: names of the tensors.

    Raises:
        ExportError: the signature fails on a request.
        TooLongError: a run does not end.
    """

    def __init__(
        self,
        session: tf.compat.v1.Session,
        inputs: Mapping[str, str],
        tensors: Mapping[str, str],
        *,
        inner: bool = False,
    ) -> None:
        """Prepares to run the tensors.

        Args:
            session: a session with the graph.
            inputs: the tensors to feed, by name.
            tensors: the tensors to fetch, by name.
            inner: whether `tensors` are outputs of arbitrary ops rather than of signatures. An
                additional op then reads them: with oneDNN, TensorFlow 2.20's remapper fuses
                x * sigmoid(x) even if the Sigmoid is fetched, and the fetch fails; it does not fuse
                a node that another node reads.
        """
        find = session.graph.get_tensor_by_name
        self._loops = partial(describe_loops, session.graph, dict(inputs), list(tensors.values()))
        self._seconds: float = _FIRST_RUN_SECONDS
        self._inputs = list(inputs)
        self.names = list(tensors)
        fetched = [find(tensor) for tensor in tensors.values()]
        if inner and fetched:
            with session.graph.as_default():
                fetched = tf.raw_ops.IdentityN(input=fetched, name="observed")
        self._run = Run(session, list(inputs.values()), [tensor.name for tensor in fetched])

    def __call__(self, columns: Columns) -> dict[str, Array]:
        """The tensors' values for these columns, by name."""
        try:
            values = self._run([columns[name] for name in self._inputs], self._seconds)
        except tf.errors.DeadlineExceededError as error:
            done = f"the signature did not finish on generated columns within {self._seconds} s"
            raise TooLongError(f"{done}; {self._loops()}".rstrip("; ")) from error
        except tf.errors.OpError as error:
            shapes = {name: list(columns[name].shape) for name in self._inputs}
            raise ExportError(
                f"the signature fails on generated columns of shapes {shapes}: {error.message}"
            ) from error
        self._seconds = _RUN_SECONDS
        return dict(zip(self.names, map(comparable, values), strict=True))


def fetchable(graph: tf.Graph, nodes: Iterable[str]) -> dict[str, str]:
    """The tensors of nodes that a session can fetch, each under its own name."""
    return {
        tensor.name: tensor.name
        for operation in map(graph.get_operation_by_name, nodes)
        for tensor in operation.outputs
        if tensor.dtype.base_dtype not in (tf.resource, tf.variant)
        and graph.is_fetchable(operation)
    }
