"""Makes the variants' requests: for the zoo's models, in every format and protocol."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import RankingClient, array_of, encode_predict_request
from colcast.client.messages import parse
from colcast.client.wire import field, integer_field
from colcast.loadtest.send.connection import Outputs, Request
from colcast.loadtest.send.formats import FORMATS, RequestData, encode

KEY = "bench_key"
_INFER = "/inference.GRPCInferenceService/ModelInfer"
_DATATYPES = {"int64": "INT64", "float32": "FP32", "object": "BYTES"}


def zoo_data(model: str, size: int, count: int) -> list[RequestData]:
    """Makes `count` different requests of `size` candidates; each size has its own requests."""
    from colcast.zoo.registry import MODELS

    found = MODELS[model].requests([size] * count, size)
    return [RequestData(len(items), user, items) for user, items in found]


def first_key(size: int) -> int:
    """The key of the first candidate of the first request of `size` candidates."""
    return size * 10_000_000


def item_table(base_path: Path, by_size: dict[int, list[RequestData]], output: Path) -> None:
    """Builds an item table with every candidate; a size's keys start at `first_key(size)`."""
    import pyarrow as pa
    from colcast.items import build_table

    rows = [
        {KEY: first_key(size) + number, **item}
        for size, data in by_size.items()
        for number, item in enumerate(item for one in data for item in one.items)
    ]
    build_table(base_path, pa.Table.from_pylist(rows), key=KEY, output=output)


def zoo_requests(
    client: RankingClient, send: str, data: Sequence[RequestData], size: int
) -> list[Request]:
    """Makes a request for each element of `data`, in the form `send`."""
    if send == "by key":
        starts = range(first_key(size), first_key(size) + size * len(data), size)
        return [
            Request(client.encode(one.user, item_keys={KEY: [*range(at, at + size)]}), size)
            for one, at in zip(data, starts, strict=True)
        ]
    if send in FORMATS:
        return [encode(client, send, one) for one in data]
    return [infer_request(encode(client, "late", one)) for one in data]


def infer_request(predict: Request) -> Request:
    """Converts a Predict request to the Open Inference Protocol, with raw tensors."""
    parsed = parse("PredictRequest", predict.payload)
    columns = {name: array_of(tensor, name) for name, tensor in parsed.inputs.items()}
    signature = field(2, field(3, parsed.model_spec.signature_name.encode()))
    payload = field(1, parsed.model_spec.name.encode())
    payload += field(4, field(1, b"signature_name") + signature)
    for name, column in columns.items():
        datatype = _DATATYPES[column.dtype.name]
        shape = b"".join(integer_field(3, size) for size in column.shape)
        payload += field(5, field(1, name.encode()) + field(2, datatype.encode()) + shape)
    for column in columns.values():
        payload += field(7, _raw(column))
    return Request(payload, predict.rows, _INFER, _no_outputs)


def _raw(column: Any) -> bytes:
    if column.dtype != object:
        return bytes(column.tobytes())
    return b"".join(struct.pack("<I", len(text)) + text for text in column.ravel())


def _no_outputs(_: bytes) -> Outputs:
    return {}


def text_base_path(model: str) -> Path:
    """Returns the base path of a text model; makes the model if it is missing."""
    from colcast.zoo.text import encoder

    return encoder.ensure(precision=model.partition("_")[2] or "float32")


def text_requests(model: str, size: int, count: int) -> list[Request]:
    """Makes `count` requests, each with `size` texts of 5 to 60 words (median 15)."""
    from colcast.zoo.text import encoder

    random = np.random.default_rng(7)
    words = " ".join(encoder.SENTENCES).split()
    lengths = np.clip(np.round(random.lognormal(np.log(15), 0.7, count * size)), 5, 60).astype(int)
    texts = [" ".join(random.choice(words, length)).encode() for length in lengths]
    return [
        Request(encode_predict_request(model, "encode", {"texts": np.array(some, object)}), size)
        for some in (texts[at : at + size] for at in range(0, len(texts), size))
    ]
