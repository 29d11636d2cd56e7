"""Joins requests as TensorFlow Serving's batching session does.

It treats inputs and outputs like tensorflow_model_server with --enable_batching, in the same order
and with the same codes, and runs the SavedModel in TensorFlow's own session:

- Every input has the same number of rows, at most as many as a batch may have.
- The rows of several requests are joined, input by input. If other dimensions differ, the batch
  fails or, with `pad_variable_length_inputs`, shorter rows are filled up with the first value of
  their tensor.
- Outputs have as many rows as the batch, and each request gets its own.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

v1 = tf.compat.v1
Columns = dict[str, Any]
INVALID = grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


class RefusedError(Exception):
    """The error of a request; an error of a batch becomes the error of all its requests."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def count_rows(columns: Columns) -> int:
    """The number of rows, which is the same in every input of a request."""
    if any(np.ndim(column) == 0 for column in columns.values()):
        raise RefusedError(INVALID, "every input needs at least one dimension")
    rows = {name: len(column) for name, column in columns.items()}
    if len(set(rows.values())) != 1:
        raise RefusedError(INVALID, f"inputs of equal first dimensions wanted, got {rows}")
    return next(iter(rows.values()))


def join(name: str, parts: Sequence[Any], pad: bool) -> Any:
    """Joins one input of several requests."""
    widest = tuple(np.max([part.shape[1:] for part in parts], axis=0).astype(int))
    if all(part.shape[1:] == widest for part in parts):
        return np.concatenate(parts)
    if not pad:
        shapes = [part.shape for part in parts]
        raise RefusedError(PRECONDITION, f"{name}: {shapes} without pad_variable_length_inputs")
    return np.concatenate([_padded(part, widest) for part in parts])


def _padded(part: Any, widest: tuple[int, ...]) -> Any:
    if part.shape[1:] == widest:
        return part
    if part.size == 0:
        raise RefusedError(INVALID, "an empty tensor in a batch of tensors that are not")
    padded = np.full((len(part), *widest), part.flat[0], part.dtype)
    padded[tuple(slice(size) for size in part.shape)] = part
    return padded


def split(outputs: Columns, rows: Sequence[int]) -> list[Columns]:
    """Splits a batch's outputs by request."""
    batch_rows = sum(rows)
    for name, output in outputs.items():
        if np.shape(output)[:1] != (batch_rows,):
            raise RefusedError(
                PRECONDITION,
                f"output {name} has shape {np.shape(output)}, the batch {batch_rows} rows",
            )
    ends = np.cumsum(rows)
    return [
        {name: output[end - count : end] for name, output in outputs.items()}
        for end, count in zip(ends, rows, strict=True)
    ]


@dataclass
class _Batch:
    requests: list[Columns] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    answers: list[Columns] = field(default_factory=list)
    refused: RefusedError | None = None
    closed: bool = False
    answered: threading.Event = field(default_factory=threading.Event)


class BatchingSession:
    """A SavedModel whose requests are joined.

    Attributes:
        batches: the signature of every batch that ran, and the rows of each of its requests.
    """

    def __init__(
        self,
        model: Path,
        *,
        max_batch_size: int,
        batch_timeout_seconds: float,
        pad: bool,
    ) -> None:
        self._session = v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            meta_graph = v1.saved_model.loader.load(self._session, ["serve"], str(model))
        self.signatures = meta_graph.signature_def
        self._max_batch_size = max_batch_size
        self._batch_timeout_seconds = batch_timeout_seconds
        self._pad = pad
        self._open: defaultdict[str, _Batch] = defaultdict(_Batch)
        self._changed = threading.Condition()
        self.batches: list[tuple[str, list[int]]] = []

    def run(self, signature: str, columns: Columns) -> Columns:
        """Runs a request, alone or with others that arrive before the batch is full or times out.

        Raises:
            RefusedError: The session or the graph refuses the request.
        """
        for name, default in self.signatures[signature].defaults.items():
            columns.setdefault(name, tf.make_ndarray(default))
        rows = count_rows(columns)
        if rows > self._max_batch_size:
            raise RefusedError(INVALID, f"{rows} rows, a batch has at most {self._max_batch_size}")
        with self._changed:
            if sum(self._open[signature].rows) + rows > self._max_batch_size:
                self._close(signature)
            batch = self._open[signature]
            position = len(batch.requests)
            batch.requests.append(columns)
            batch.rows.append(rows)
            self._changed.notify_all()
            if position == 0:  # the first request of a batch closes and runs it
                self._changed.wait_for(
                    lambda: batch.closed or sum(batch.rows) == self._max_batch_size,
                    self._batch_timeout_seconds,
                )
                if not batch.closed:
                    self._close(signature)
        if position == 0:
            self._run_batch(signature, batch)
        batch.answered.wait()
        if batch.refused:
            raise batch.refused
        return batch.answers[position]

    def _close(self, signature: str) -> None:
        """Closes the open batch, so that no more requests join it."""
        self._open.pop(signature).closed = True
        self._changed.notify_all()

    def _run_batch(self, signature: str, batch: _Batch) -> None:
        self.batches.append((signature, batch.rows))
        try:
            joined = {
                name: join(name, [r[name] for r in batch.requests], self._pad)
                for name in batch.requests[0]
            }
            batch.answers = split(self._run_unchecked(signature, joined), batch.rows)
        except tf.errors.OpError as error:
            codes = {code.value[0]: code for code in grpc.StatusCode}
            batch.refused = RefusedError(codes[error.error_code], error.message)
        except RefusedError as refused:
            batch.refused = refused
        finally:
            batch.answered.set()

    def _run_unchecked(self, signature: str, columns: Columns) -> Columns:
        """Runs the session as C++ does: feeds are not compared with their placeholders' shapes."""
        definition = self.signatures[signature]
        options = config_pb2.CallableOptions(
            feed=[definition.inputs[name].name for name in columns],
            fetch=[info.name for info in definition.outputs.values()],
        )
        with self._session.graph.as_default():
            run = self._session._make_callable_from_options(options)
        return dict(zip(definition.outputs, run(*columns.values()), strict=True))
