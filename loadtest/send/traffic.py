"""Sources of requests, by their names on the command line."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from colcast.client import DecodeError, RankingClient, array_of
from colcast.client.messages import parse
from colcast.client.tfrecord import read_records
from colcast.loadtest.send.formats import RequestData, signature_for
from colcast.loadtest.send.generated import accepted_by, generated
from colcast.loadtest.send.sizes import draw

_ROW_TO_USER = "row_to_user"  # the input that holds each row's user, if there are several
_LENGTH = "/length"  # suffix of the column that holds the lengths of lists


def recorded_examples(path: Path, request_id: str, limit: int) -> list[RequestData]:
    """Makes one request from consecutive tf.Examples with the same request id.

    Args:
      path: a TFRecord file of tf.Examples.
      request_id: the feature that identifies a request; it is also sent, as recorded.
      limit: the largest number of requests.
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
    """
    found = []
    for number, record in enumerate(islice(read_records(path), limit)):
        try:
            found.append(_request(_logged(record)))
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
        for entry in parse("Example", record).features.feature:
            feature = parse("FeatureEntry", entry)
            if feature.key == name.encode():
                return bytes(feature.value)
    except DecodeError as error:
        raise ValueError(f"{path}, record {number}: not a tf.Example: {error}") from None
    raise ValueError(f"{path}, record {number}: no feature {name!r} to identify the request")


def _logged(record: bytes) -> bytes:
    """The request in a PredictionLog; another record unchanged."""
    log = parse("PredictionLog", record)
    if log.classify_log or not log.HasField("predict_log"):  # field 2 holds a request's inputs
        return record
    return bytes(log.predict_log.request.SerializeToString())


def _up_to(lengths: Any, column: Any) -> Any:
    """A column's rows, without padding if their lengths are given."""
    if lengths is None:
        return column
    return [row[:length] for row, length in zip(column, lengths, strict=True)]


def _only_recorded(columns: Mapping[str, Any]) -> str:
    if _ROW_TO_USER in columns:
        return f"a recorded request has several users ({_ROW_TO_USER})"
    empty = next((name for name, column in columns.items() if column.shape[:1] == (0,)), None)
    return f"a recorded request has no candidates ({empty!r} has 0 rows)" if empty else ""


def _request(record: bytes) -> RequestData:
    inputs = parse("PredictRequest", record).inputs
    columns = {name: array_of(tensor, name) for name, tensor in inputs.items()}
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


def load(args: Any, connect: Callable[[], RankingClient]) -> list[RequestData]:
    """Makes the requests; the same options always make the same requests.

    Args:
      args: the options of `options.traffic_options`, and maybe `signature`, whose inputs are
        generated; None for the columnar one.
      connect: makes a client for the served model, for sources that need one.
    """
    if args.distinct < 1:
        raise ValueError(f"expected at least 1 distinct request, got {args.distinct}")
    kind, _, name = args.traffic.partition(":")
    if kind == "examples" and name:
        return recorded_examples(Path(name), args.request_id, args.distinct)
    if kind == "requests" and name:
        return recorded_requests(Path(name), args.distinct)
    sizes = draw(args.sizes, args.distinct, args.seed).tolist()
    if kind == "zoo" and name:
        return zoo_requests(name, sizes, args.seed)
    if args.traffic != "generated":
        expected = "expected generated, zoo:NAME, examples:FILE or requests:FILE"
        raise ValueError(f"traffic {args.traffic!r}: {expected}")
    signature = getattr(args, "signature", None)
    with connect() as client:
        schema = client.schema()
        accepts = accepted_by(client, signature_for(schema, "repeated", signature))
        return generated(schema, sizes, args.seed, args.user_features, signature, args.ids, accepts)


def zoo_requests(name: str, sizes: Sequence[int], seed: int) -> list[RequestData]:
    """Makes requests for a model of the zoo, with tf.Examples that TensorFlow itself writes."""
    # Imported here because only this function needs TensorFlow.
    from colcast.zoo.examples import serialize_request
    from colcast.zoo.registry import MODELS

    if name not in MODELS:
        raise ValueError(f"the zoo has no {name!r}; it has {', '.join(MODELS)}")
    return [
        RequestData(len(items), user, items, serialize_request(user, items))
        for user, items in MODELS[name].requests(sizes, seed)
    ]
