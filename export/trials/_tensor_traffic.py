"""Recorded requests to a signature that takes tensors, from a TFRecord file."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.graph._errors import ExportError
from colcast.export.trials._records import records
from colcast.export.trials._rows import Rows, Values
from colcast.export.trials._traffic import (
    MOST_REQUESTS,
    Recorded,
    recorded_inputs,
    unused_text,
    why_unused,
)

Request = Mapping[str, Any]  # input name -> array


@dataclasses.dataclass(frozen=True)
class TensorTraffic(Recorded):
    """The recorded requests.

    Attributes:
      requests: the inputs of each request; a column of one row applies to all rows.
      inputs: the features that are columns.
      unused: number of requests left out, by reason.
    """

    has_requests = True

    requests: tuple[Request, ...]
    inputs: tuple[Feature, ...]
    unused: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def batches(self, features: Sequence[Feature]) -> Iterator[Rows]:
        for request in self.requests:
            rows = self._rows(request)
            values = {f.name: _values(f, request[f.name], rows) for f in features}
            yield Rows.of(features, values)

    def features(self) -> Iterator[list[dict[str, bytes]]]:
        """The serialized features of each row, request by request."""
        for request in self.requests:
            rows = self._rows(request)
            columns = {f.name: _repeated(request[f.name], rows) for f in self._by_row}
            yield [
                {name: _serialized(column[row]) for name, column in columns.items()}
                for row in range(rows)
            ]

    @property
    def _by_row(self) -> list[Feature]:
        return [feature for feature in self.inputs if feature.kind is not Kind.WHOLE]

    def _rows(self, request: Request) -> int:
        return max(len(request[feature.name]) for feature in self._by_row)


def read_tensor_traffic(file: Path, features: Sequence[Feature]) -> TensorTraffic:
    """Reads the first requests of a TFRecord file that have all inputs of a signature.

    Args:
      file: PredictRequest or PredictionLog records; gzipped if its name ends in .gz.
      features: the signature's inputs.

    Raises:
      ExportError: the file cannot be read, no request has these inputs, or a value does not fit its
        input.
    """
    requests, others, unused = [], set(), Counter[str]()
    names = [feature.name for feature in features]
    by_row = [feature.name for feature in features if feature.kind is not Kind.WHOLE]
    for number, record in enumerate(records(file)):
        inputs = recorded_inputs(record) or {}
        missing = sorted(name for name in names if name not in inputs)
        if missing:
            others.update(missing)
            continue
        if reason := why_unused(inputs, names, by_row):
            unused[reason] += 1
            continue
        request = {f.name: np.asarray(tf.make_ndarray(inputs[f.name])) for f in features}
        _check(file, number, request, features)
        requests.append(request)
        if len(requests) == MOST_REQUESTS:
            break
    if not requests and unused:
        raise ExportError(f"{file} has no request to compare, only {unused_text(unused)}")
    if not requests:
        raise ExportError(
            f"no record of {file} is a PredictRequest or PredictionLog with all inputs of the"
            f" signature; missing are {', '.join(sorted(others)) or 'records'}"
        )
    return TensorTraffic(tuple(requests), tuple(features), unused)


def _check(file: Path, number: int, request: Request, features: Sequence[Feature]) -> None:
    by_row = [f for f in features if f.kind is not Kind.WHOLE]
    for feature in features:
        expected = tf.TensorShape(feature.columns[0].shape)
        column = request[feature.name]
        if not expected.is_compatible_with(column.shape) or column.dtype != feature.numpy_dtype:
            raise ExportError(
                f"input {feature.name!r} of the request in record {number} of {file} is"
                f" {column.dtype} {list(column.shape)}, expected {feature.dtype} {expected}"
            )
    sizes = {feature.name: len(request[feature.name]) for feature in by_row}
    rows = max(sizes.values())
    for name, size in sizes.items():
        if size not in (1, rows):
            raise ExportError(
                f"input {name!r} of the request in record {number} of {file} has {size} rows,"
                f" expected 1 or {rows}"
            )


def _repeated(column: Any, rows: int) -> Any:
    return np.repeat(column, rows, axis=0) if len(column) == 1 else column


def _values(feature: Feature, column: Any, rows: int) -> list[Values]:
    if feature.kind is Kind.WHOLE:
        return [column.reshape(-1).tolist()] * rows
    return [row.reshape(-1).tolist() for row in _repeated(column, rows)[:, np.newaxis]]


def _serialized(value: Any) -> bytes:
    array = np.asarray(value)
    return repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
