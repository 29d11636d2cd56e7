"""Recorded traffic from a TFRecord file: tf.Examples, or requests with tf.Examples or columns."""

import dataclasses
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.client import DecodeError as ParseError
from colcast.client.messages import parse
from colcast.client.tfrecord import read_records
from colcast.export.convert._features import Feature, Kind
from colcast.export.graph._errors import ExportError
from colcast.export.trials._rows import FIELDS, Rows, Values
from google.protobuf.message import DecodeError
from tensorflow.core.framework.tensor_pb2 import TensorProto

MOST_REQUESTS = 1000
ROW_TO_USER = "row_to_user"
"""The input that says which user each row has, in a request with several users."""

_SEVERAL_USERS = "of several users"
_OTHER_ROWS = "with rows of other domains"
_INDEX = "row_to_"
_NO_CANDIDATES = "without candidates"
_INPUT_LOGS = ("classify_log", "regress_log", "multi_inference_log")
_BATCH = 100  # number of single tf.Examples that form a batch


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Recorded requests.

    Attributes:
      requests: the rows of each request, in recorded order.
      has_requests: whether the file shows which rows form a request; otherwise `requests` are
        arbitrary batches.
      unused: number of requests left out, by reason.
    """

    requests: tuple[Rows, ...]
    has_requests: bool
    unused: Mapping[str, int]

    def by_request(self) -> Iterator[Rows]:
        """The rows of each request; each row, if the file does not show which rows form one."""
        for rows in self.requests:
            yield from [rows] if self.has_requests else [rows[n : n + 1] for n in range(len(rows))]

    def constant_features(self) -> tuple[str, ...]:
        """Names of the features that are the same on every row of every request, sorted.

        Raises:
          ExportError: no request has two or more rows to compare.
        """
        several = [rows for rows in self.by_request() if len(rows) > 1]
        if not several:
            found = "only requests of one row" if self.has_requests else "single tf.Examples"
            raise ExportError(
                "cannot tell which features are the user's: expected recorded PredictRequests or"
                f" PredictionLogs of two rows or more, found {found}"
            )
        features = [f.name for f in several[0].features if f.kind is not Kind.WHOLE]
        cells = [(name, rows.cells[name]) for rows in several for name in features]
        seen = {name for name, of in cells if of.is_ever_present}
        return tuple(sorted(seen - {name for name, of in cells if not of.is_constant}))


def read_traffic(
    file: Path, source_input: str, features: Sequence[Feature], *, lists: bool = False
) -> Recorded:
    """Reads the first records of a TFRecord file; gzipped if its name ends in .gz.

    Args:
      file: records of tf.Example, PredictRequest or PredictionLog, all of one kind.
      source_input: the input in which requests carry serialized tf.Examples.
      features: the signature's features; requests may carry them as columns instead.
      lists: whether records are ExampleListWithContexts instead of tf.Examples, each a request.

    Raises:
      ExportError: the file cannot be read or holds something else.
    """
    names = [feature.name for feature in features]
    requests: list[Rows] = []
    singles: list[bytes] = []
    unused: Counter[str] = Counter()
    for number, record in enumerate(records(file)):
        name = f"record {number} of {file}"
        logged = _logged_examples(record)
        inputs = recorded_inputs(record) if logged is None else None
        if logged is not None:
            found = [rows_of(logged, features)]
        elif inputs is None and lists:
            found = [rows_of(_examples_of_list(record, name), features)]
        elif inputs is None:
            if not _features(record):
                raise ExportError(f"{name} is not a tf.Example, PredictRequest or PredictionLog")
            singles.append(record)
            found = []
        elif reason := _why_unused(inputs, names, inputs):
            unused[reason] += 1
            continue
        elif source_input in inputs:
            carried = tf.make_ndarray(inputs[source_input]).reshape(-1).tolist()
            of_each = [_examples_of_list(one, name) for one in carried] if lists else [carried]
            found = [rows_of(examples, features) for examples in of_each]
        elif not inputs.keys() & set(names):
            raise ExportError(
                f"the request in {name} has neither tf.Examples nor a column of the model; it has"
                f" the inputs {', '.join(map(repr, inputs))}"
            )
        else:
            found = [_of_columns(f"the request in {name}", inputs, features)]
        requests += [rows for rows in found if len(rows)]
        unused[_NO_CANDIDATES] += sum(not len(rows) for rows in found)
        if len(requests) >= MOST_REQUESTS or len(singles) == MOST_REQUESTS * _BATCH:
            break
    if singles and requests:
        raise ExportError(f"{file} has both tf.Examples and requests; expected one kind")
    if not singles and not requests:
        only = f"request to compare, only {unused_text(+unused)}"
        raise ExportError(f"{file} has no {only if +unused else 'records'}")
    batches = (singles[i : i + _BATCH] for i in range(0, len(singles), _BATCH))
    rows = requests or [rows_of(batch, features) for batch in batches]
    return Recorded(tuple(rows), has_requests=bool(requests), unused=+unused)


def read_tensor_traffic(file: Path, features: Sequence[Feature]) -> Recorded:
    """Reads the first requests of a TFRecord file that have all inputs of a signature.

    Args:
      file: PredictRequest or PredictionLog records; gzipped if its name ends in .gz.
      features: the signature's inputs.

    Raises:
      ExportError: the file cannot be read, no request has these inputs, or a value does not fit its
        input.
    """
    requests, others, unused = list[Rows](), set[str](), Counter[str]()
    names = [feature.name for feature in features]
    by_row = [feature.name for feature in features if feature.kind is not Kind.WHOLE]
    for number, record in enumerate(records(file)):
        inputs = recorded_inputs(record) or {}
        missing = sorted(name for name in names if name not in inputs)
        if missing:
            others.update(missing)
        elif reason := _why_unused(inputs, names, by_row):
            unused[reason] += 1
        else:
            request = f"the request in record {number} of {file}"
            requests.append(_of_columns(request, inputs, features))
        if len(requests) == MOST_REQUESTS:
            break
    if not requests and unused:
        raise ExportError(f"{file} has no request to compare, only {unused_text(unused)}")
    if not requests:
        raise ExportError(
            f"no record of {file} is a PredictRequest or PredictionLog with all inputs of the"
            f" signature; missing are {', '.join(sorted(others)) or 'records'}"
        )
    return Recorded(tuple(requests), has_requests=True, unused=unused)


def _of_columns(request: str, inputs: Mapping[str, Any], features: Sequence[Feature]) -> Rows:
    """A request's rows; a column of one row applies to all rows, and rows lack absent features."""
    names = {column.name for feature in features for column in feature.columns}
    columns = {n: np.asarray(tf.make_ndarray(t)) for n, t in inputs.items() if n in names}
    by_row = [feature.name for feature in features if feature.kind is not Kind.WHOLE]
    rows = max((len(columns[n]) for n in by_row if n in columns and columns[n].ndim), default=0)
    values: dict[str, list[Values]] = {}
    for feature in features:
        name, column = feature.name, columns.get(feature.name)
        if column is None:
            values[name] = [None] * rows
            continue
        expected = tf.TensorShape(feature.columns[0].shape)
        if not expected.is_compatible_with(column.shape) or column.dtype != feature.numpy_dtype:
            raise ExportError(
                f"input {name!r} of {request} is {column.dtype} {list(column.shape)}, expected"
                f" {feature.dtype} {expected}"
            )
        if feature.kind is Kind.WHOLE:
            values[name] = [column.reshape(-1).tolist()] * rows
            continue
        every = np.array([int(np.prod(column.shape[1:]))])
        lengths = columns.get(feature.length_column or "", every)
        for own in (column, lengths):
            if len(own) not in (1, rows):
                raise ExportError(
                    f"input {name!r} of {request} has {len(own)} rows, expected 1 or {rows}"
                )
        each = np.broadcast_to(column, (rows, *column.shape[1:])).reshape(rows, -1)
        counts = np.broadcast_to(lengths, (rows,))
        values[name] = [row[:count].tolist() for row, count in zip(each, counts, strict=True)]
    return Rows.of(features, values)


def unused_text(unused: Mapping[str, int]) -> str:
    """A phrase about the requests that were left out, such as "2 of several users"."""
    return ", ".join(f"{count} {reason}" for reason, count in unused.items())


def rows_of(examples: Sequence[bytes], features: Sequence[Feature]) -> Rows:
    """Reads some features of serialized tf.Examples as rows."""
    rows = [tf.train.Example.FromString(example).features.feature for example in examples]
    values: dict[str, Any] = {}
    for feature in features:
        field = FIELDS[feature.dtype]
        values[feature.name] = [
            list(getattr(row[feature.name], field).value) if _has(row, feature.name) else None
            for row in rows
        ]
    return Rows.of(features, values)


def _examples_of_list(serialized: bytes, record: str) -> tuple[bytes, ...]:
    """The examples of an ExampleListWithContext, each with the context's features."""
    try:
        message = parse("ExampleListWithContext", serialized)
    except ParseError as error:
        raise ExportError(f"{record} is not an ExampleListWithContext") from error
    return _with_context(message)


def _with_context(message: Any) -> tuple[bytes, ...]:
    # Concatenated serialized messages are one message with the fields of both.
    return tuple(bytes(message.context + example) for example in message.examples)


def _has(row: Any, name: str) -> bool:
    return name in row and row[name].WhichOneof("kind") is not None


def recorded_inputs(record: bytes) -> Any:
    """The inputs of a PredictRequest, or of one in a PredictionLog; None for other records."""
    log, request = _parsed("PredictionLog", record), _parsed("PredictRequest", record)
    inputs = (log and log.predict_log.request.inputs) or (request and request.inputs)
    if not inputs:
        return None
    return {n: TensorProto.FromString(tensor.SerializeToString()) for n, tensor in inputs.items()}


def _why_unused(
    inputs: Mapping[str, Any], features: Collection[str], by_row: Collection[str]
) -> str | None:
    """Why a request is left out: several users, other domains, no candidates; None if it is not.

    Args:
      inputs: the TensorProtos that were sent.
      features: names of the model's features.
      by_row: names of the inputs whose first dimension counts rows.
    """
    indices = [name for name in inputs if name.startswith(_INDEX) and name not in features]
    if indices:
        return _SEVERAL_USERS if ROW_TO_USER in indices else _OTHER_ROWS
    shapes = [inputs[name].tensor_shape.dim for name in by_row]
    return _NO_CANDIDATES if any(shape and not shape[0].size for shape in shapes) else None


def _logged_examples(record: bytes) -> tuple[bytes, ...] | None:
    """The tf.Examples of a PredictionLog for an API other than Predict; None for other records."""
    log = _parsed("ExamplesLog", record)
    for field in _INPUT_LOGS if log else ():
        request = getattr(log, field).request
        # The bytes of a PredictRequest may parse as a PredictionLog, but not with this field.
        if request.HasField("input"):
            lists = (request.input.example_list, request.input.example_list_with_context)
            return tuple(example for each in lists for example in _with_context(each))
    return None


def records(file: Path) -> Iterator[bytes]:
    """The records of a TFRecord file; gzipped if its name ends in .gz.

    Raises:
      ExportError: the file is not a TFRecord file, is damaged, or ends within a record.
    """
    if not file.is_file():
        raise ExportError(f"{file} is not a file; expected a TFRecord file")
    try:
        yield from read_records(file)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ExportError(f"{file} is not a readable TFRecord file: {error}") from error


def _parsed(message: str, record: bytes) -> Any:
    try:
        return parse(message, record)
    except ParseError:
        return None


def _features(serialized: bytes) -> dict[str, bytes]:
    """The serialized features of a tf.Example; empty if it is something else."""
    try:
        features = tf.train.Example.FromString(serialized).features.feature
    except DecodeError:
        return {}
    return {
        name: feature.SerializeToString(deterministic=True) for name, feature in features.items()
    }
