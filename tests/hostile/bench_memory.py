"""What small requests for much memory cost: python -m tests.hostile.bench_memory [ATTACK...].

On `wide`, with default flags; what large REST bodies cost is in tests/server/bench_large_rest.py.
For each attack: its bytes, what came of it, the server's CPU, how much memory it took, and what
another client's requests of 20 candidates took meanwhile (Predict over gRPC, one after another).
The other client and the attacker share one core if there are two, the server has the other. Wall
times: only the ratios of one run mean something.
"""

import argparse
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.client import encode_predict_request
from colcast.loadtest.beside import BESIDE, GoingOn, alone_and_beside
from colcast.loadtest.variants import Column, Variant, measure_variants, other
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.catalog import Catalog
from colcast.zoo.wide import WIDE
from tensorflow_serving.apis import predict_pb2

MB = 1_000_000
PREDICT = "/tensorflow.serving.PredictionService/Predict"
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]
MIN_CALLS = 20
SENT, CODES = "bytes", "codes"
COLUMNS = (
    other(SENT, ",.0f"),
    other(CODES, "", over=max),
    Column("CPU, s", attrgetter("server_cpu_seconds")),
    *BESIDE,
)
Attack = Callable[[ServerProcess], tuple[int, str]]  # bytes sent, what came of it


def request_of(rows: int, signature: str) -> bytes:
    """A request of `wide` whose candidates are all alike."""
    columns = Catalog(WIDE, "user", 1, seed=1).columns(np.zeros(1, int))
    columns |= Catalog(WIDE, "item", 1, seed=2).columns(np.zeros(rows, int))
    return encode_predict_request("wide", signature, columns)


def declared(rows: int) -> bytes:
    """The same in a few kB: each item column has one value and says that it has `rows`."""
    return _declaring(rows, 1000)


def declared_once(rows: int) -> bytes:
    """One item column declares rows, all others have one: a few hundred bytes more than a user."""
    return _declaring(rows, 1)


def _declaring(rows: int, columns: int) -> bytes:
    request = predict_pb2.PredictRequest.FromString(request_of(1, "columnar"))
    items = [name for name in sorted(request.inputs) if name.startswith("item")]
    for name in items[:columns]:
        tensor = request.inputs[name]
        tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(tensor)))  # not as bytes
        tensor.tensor_shape.dim[0].size = rows
    return request.SerializeToString()


def calls(messages: list[bytes], **options: Any) -> Attack:
    """All at once over one connection."""

    def attack(server: ServerProcess) -> tuple[int, str]:
        with grpc.insecure_channel(server.target, OPTIONS) as channel:
            predict = channel.unary_unary(PREDICT)
            sent = [predict.future(each, timeout=120, **options) for each in messages]
            codes = {call.code().name for call in sent}
        return sum(map(len, messages)), ", ".join(sorted(codes))

    return attack


def bombs(count: int, inflated: int) -> Attack:
    """Messages that are compressed a thousand times."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "nobody"
    request.inputs["x"].tensor_content = bytes(inflated)
    size = len(gzip.compress(request.SerializeToString()))
    attack = calls([request.SerializeToString()] * count, compression=grpc.Compression.Gzip)
    return lambda server: (count * size, attack(server)[1])


def after_one_call(rows: int) -> Attack:
    """The first call to a signature is cold and slow; the second has many candidates."""

    def attack(server: ServerProcess) -> tuple[int, str]:
        calls([request_of(2, "columnar_exact")])(server)
        return calls([declared(rows)])(server)

    return attack


ATTACKS: dict[str, Attack] = {
    "N = 262,144 after one cold call": after_one_call(262_144),
    "one column declares 1,048,576 rows": calls([declared_once(1_048_576)]),
    "all item columns declare 1,048,576": calls([declared(1_048_576)]),
    "the same, twice at once": calls([declared(1_048_576)] * 2),
    "twelve gzip messages of 225 MB": bombs(12, 225 * MB),
}


@contextmanager
def attacked(server: ServerProcess, attack: Attack) -> Iterator[GoingOn]:
    """Until the attack has come to an end."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(attack, server)
        going_on = GoingOn(lambda done: done < MIN_CALLS or not running.done())
        yield going_on
        going_on.told[SENT], going_on.told[CODES] = running.result()


def groups(names: Sequence[str], cores: Sequence[int]) -> Iterator[tuple[str, list[Variant]]]:
    """Every attack on a server of its own."""
    base_path, message = exported("wide"), request_of(20, "columnar_late")
    for name in names:
        with (
            ServerProcess("wide", base_path) as server,
            grpc.insecure_channel(server.target, OPTIONS) as channel,
        ):
            for thread in Path(f"/proc/{server.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores[1:] or cores)
            ask = partial(channel.unary_unary(PREDICT), message, timeout=120)
            attack = partial(attacked, server, ATTACKS[name])
            yield name, alone_and_beside(ask, attack, server.pid, (3, 3), MIN_CALLS)


def main() -> None:
    """Prints two lines per attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", help="those whose names contain one of these")
    wanted = parser.parse_args().attacks or [""]
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    chosen = [name for name in ATTACKS if any(word in name for word in wanted)]
    measure_variants(groups(chosen, cores), 1, COLUMNS)


if __name__ == "__main__":
    main()
