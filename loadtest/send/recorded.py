"""Reads recorded traffic: TFRecord files of tf.Examples, PredictRequests or PredictionLogs."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from colcast.client import DecodeError, decode_tensor
from colcast.client.tfrecord import read_records
from colcast.client.wire import fields, map_entry, message
from colcast.loadtest.send.formats import RequestData

_ROW_TO_USER = "row_to_user"  # in a request of several users: the user of each row
_LENGTH = "/length"  # suffix of the column with each row's number of values


def recorded_examples(path: Path, request_id: str, limit: int) -> list[RequestData]:
    """Makes a request from consecutive single tf.Examples with the same request id.

    Args:
      path: a TFRecord file of tf.Examples.
      request_id: the feature that identifies a request; it is sent along, as recorded.
      limit: the largest number of requests.

    Raises:
      ValueError: the file is not a TFRecord file, or a record is not a tf.Example or lacks this
          feature.
    """
    records = enumerate(read_records(path))
    grouped = groupby(records, key=lambda record: _request_id(path, record, request_id))
    requests = ([example for _, example in group] for _, group in islice(grouped, limit))
    found = [RequestData(rows=len(examples), examples=examples) for examples in requests]
    return _some(path, found)


def recorded_requests(path: Path, limit: int) -> list[RequestData]:
    """Reads recorded requests.

    The format `recorded` sends them unchanged; other formats encode them again.

    Args:
      path: a TFRecord file of tensorflow.serving.PredictRequests, or of PredictionLogs, such as a
        server's request log.
      limit: the largest number of requests.

    Raises:
      ValueError: the file is not a TFRecord file, or a record contains no PredictRequest.
    """
    found = []
    for number, record in enumerate(islice(read_records(path), limit)):
        try:
            found.append(_request(_logged(record) or record))
        except DecodeError as error:
            raise ValueError(f"{path}, record {number}: no PredictRequest: {error}") from None
    return _some(path, found)


def _some(path: Path, found: list[RequestData]) -> list[RequestData]:
    if not found:
        raise ValueError(f"{path} holds no request")
    return found


def _request_id(path: Path, numbered: tuple[int, bytes], name: str) -> bytes:
    number, record = numbered
    try:
        for entry in _inner(1, _inner(1, [record])):
            key, value = map_entry(entry)
            if key == name:
                return value
    except DecodeError as error:
        raise ValueError(f"{path}, record {number}: no tf.Example: {error}") from None
    raise ValueError(f"{path}, record {number}: no feature {name!r} to tell requests apart")


def _inner(wanted: int, messages: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the messages in field `wanted` of these messages."""
    for outer in messages:
        for number, _, value in fields(outer):
            if number == wanted:
                yield message(number, value)


def _logged(record: bytes) -> bytes:
    """The request in a PredictionLog's predict_log (field 6); empty for another record."""
    numbers = {number: value for number, _, value in fields(record)}
    if 6 not in numbers or 2 in numbers:  # field 2 would be the inputs of a PredictRequest
        return b""
    return b"".join(_inner(1, [message(6, numbers[6])]))


def _up_to(lengths: Any, column: Any) -> Any:
    """The rows of a column without padding, if there is a column of lengths."""
    if lengths is None:
        return column
    return [row[:length] for row, length in zip(column, lengths, strict=True)]


def _only_recorded(columns: Mapping[str, Any]) -> str:
    if _ROW_TO_USER in columns:
        return f"a recorded request has several users ({_ROW_TO_USER})"
    empty = next((name for name, column in columns.items() if column.shape[:1] == (0,)), None)
    return f"a recorded request has no candidates ({empty!r} has 0 rows)" if empty else ""


def _request(record: bytes) -> RequestData:
    inputs = dict(
        map_entry(message(number, value)) for number, _, value in fields(record) if number == 2
    )
    columns = {name: decode_tensor(tensor, name) for name, tensor in inputs.items()}
    if not columns:
        raise DecodeError("it has no inputs")
    if reason := _only_recorded(columns):
        rows = len(columns[_ROW_TO_USER]) if _ROW_TO_USER in columns else 0
        return RequestData(rows=rows, recorded=record, only_recorded=reason)
    rows = max(len(column) if column.ndim else 1 for column in columns.values())
    (first, *others) = columns.values()
    if first.dtype == object and first.ndim == 1 and not others:
        return RequestData(rows=rows, examples=first.tolist(), recorded=record)
    user, items = {}, {}
    for name, column in columns.items():
        if name.endswith(_LENGTH) and name.removesuffix(_LENGTH) in columns:
            continue
        values = _up_to(columns.get(name + _LENGTH), column)
        if column.ndim and len(column) == rows:
            items[name] = values
        else:
            user[name] = values[0] if column.ndim else column
    return RequestData(rows=rows, user=user, items=items, recorded=record)
