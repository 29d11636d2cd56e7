"""Measures what a request costs the client: encodes requests of `wide` in this process."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from colcast.bench.requests import zoo_data
from colcast.bench.table import Variant
from colcast.client import RankingClient
from colcast.loadtest.measure.recording import Call, Recording
from colcast.loadtest.measure.run import in_turn


def encoded_in_turn(
    client: RankingClient, rows: Sequence[Variant], size: int, rounds: int
) -> dict[str, list[Recording]]:
    """Encodes a request in every way in every round; `client` knows the model's schema."""
    ways = _ways(client, size)

    def turn(row: Variant, _: int = 0) -> Recording:
        cpu, began = time.process_time(), time.perf_counter()
        length = ways[row.send]()
        took = time.perf_counter() - began
        call = Call(0.0, 0.0, took, "OK", size, length, 0)
        return Recording([call], wall_seconds=took, server_cpu_seconds=time.process_time() - cpu)

    for row in rows:  # warm up
        turn(row)
    return dict(zip([row.title for row in rows], in_turn(rows, turn, rounds), strict=True))


def _ways(client: RankingClient, size: int) -> dict[str, Callable[[], int]]:
    """Ways of encoding; each returns the number of bytes it wrote."""
    import numpy as np
    import tensorflow as tf
    from colcast.zoo.examples import serialize_request
    from tensorflow_serving.apis import predict_pb2

    (data,) = zoo_data(client.model, size, 1)
    user, items = data.user or {}, data.items
    columns = {name: np.array([value]) for name, value in user.items()}
    columns |= {name: np.array([item[name] for item in items]) for name in items[0]}
    arrays = {
        name: column.astype(object) if column.dtype.kind == "U" else column
        for name, column in columns.items()
    }
    own = {name: arrays[name] for name in items[0]}
    mixed = [{**user, **item} for item in items]

    def tensor_protos() -> int:
        request = predict_pb2.PredictRequest()
        for name, column in arrays.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(column))
        return len(request.SerializeToString())

    def late(*rows: Any) -> Callable[[], int]:
        return lambda: len(client.encode(*rows, target="columnar"))

    return {
        "tf.Examples": lambda: sum(map(len, serialize_request(user, items))),
        "tensor protos": tensor_protos,
        "rows": late(user, items),
        "mixed rows": late(None, mixed),
        "arrays": late(user, own),
    }
