"""What small requests for much memory cost: python -m tests.hostile.bench_memory.

On `wide`, with default flags. For each attack: its bytes, what came of it, the server's CPU, how
much memory it took, and what another client's requests of 20 candidates took meanwhile (Predict
over gRPC, one after another). The other client and the attacker share one core if there are two,
the server has the other. Wall times: only the ratios of one run mean something.
"""

import argparse
import gzip
import http.client
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.client import encode_predict_request
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.zoo_models import exported, zoo_rows
from colcast.server import ServerProcess
from rich.console import Console
from rich.table import Table
from tensorflow_serving.apis import predict_pb2

MB = 1_000_000
PREDICT = "/tensorflow.serving.PredictionService/Predict"
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]
ALONE_SECONDS = 3.0
Attack = Callable[[ServerProcess], tuple[int, str]]  # bytes sent, what came of it


def request_of(rows: int, signature: str) -> bytes:
    """A request of `wide` whose candidates are all alike."""
    (data,) = zoo_rows("wide")(1, 1)
    columns = {name: _column(value, 1) for name, value in data.user.items()}
    columns |= {name: _column(value, rows) for name, value in data.items[0].items()}
    return encode_predict_request("wide", signature, columns)


def _column(value: Any, rows: int) -> Any:
    dtype = {int: np.int64, float: np.float32}.get(type(value), object)
    return np.array([value] * rows, dtype)


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


def bodies(count: int, size: int, model: str) -> Attack:
    """REST bodies of about so many bytes, all at once."""

    def post(server: ServerProcess) -> int:
        values = b",".join([b"0.5"] * (size // 4))
        body = b'{"signature_name": "columnar", "inputs": {"item_001": [%s]}}' % values
        connection = http.client.HTTPConnection(server.rest_target, timeout=120)
        try:
            connection.request("POST", f"/v1/models/{model}:predict", body)
            return connection.getresponse().status
        except OSError:  # refused before all was sent
            return 0
        finally:
            connection.close()

    def attack(server: ServerProcess) -> tuple[int, str]:
        with ThreadPoolExecutor(count) as pool:
            codes = set(pool.map(lambda _: post(server), range(count)))
        return count * size, ", ".join("closed" if not code else str(code) for code in codes)

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
    "a REST body of 255 MB": bodies(1, 255 * MB, "wide"),
    "16 MB to no model": bodies(1, 16 * MB, "nobody"),
    "three bodies of 48 MB": bodies(3, 48 * MB, "wide"),
    "twelve gzip messages of 225 MB": bombs(12, 225 * MB),
}


def latencies(server: ServerProcess, until: Callable[[], bool]) -> np.ndarray:
    """Milliseconds of another client's requests of 20 candidates, one after another."""
    message, times = request_of(20, "columnar_late"), []
    with grpc.insecure_channel(server.target, OPTIONS) as channel:
        predict = channel.unary_unary(PREDICT)
        while not until() or len(times) < 20:
            begin = time.perf_counter()
            predict(message, timeout=120)
            times.append(1000 * (time.perf_counter() - begin))
    return np.array(times)


def measure(base_path: Path, attack: Attack) -> list[str]:
    """The cells of a row, on a server of its own."""
    with ServerProcess("wide", base_path, ["--rest_api_port=-1"]) as server:
        if (cores := sorted(os.sched_getaffinity(0)))[1:]:
            os.sched_setaffinity(server.pid, cores[1:])
            for thread in Path(f"/proc/{server.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores[1:])
        latencies(server, lambda: True)
        end = time.monotonic() + ALONE_SECONDS
        alone = latencies(server, lambda: time.monotonic() > end)
        meter = ProcessMeter(server.pid)
        memory, cpu = meter.memory_bytes(), meter.cpu_seconds()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(attack, server)
            beside = latencies(server, running.done)
            size, outcome = running.result()
        cpu = meter.cpu_seconds() - cpu - len(beside) * np.median(alone) / 1000
        grown = (meter.peak_memory_bytes() - memory) / MB
    p99 = [float(np.percentile(times, 99)) for times in (alone, beside)]
    return [
        f"{size:,}", outcome, f"{max(cpu, 0):.2f}", f"{grown:,.0f}",
        f"{p99[0]:.1f}", f"{p99[1]:.1f}", f"{p99[1] / p99[0]:.1f}", f"{beside.max():.0f}",
    ]  # fmt: skip


def main() -> None:
    """Prints a line per attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", help="those whose names contain one of these")
    wanted = parser.parse_args().attacks
    if (cores := sorted(os.sched_getaffinity(0)))[1:]:
        os.sched_setaffinity(0, cores[:1])
    base_path = exported("wide")
    table = Table(
        "attack", "bytes", "answer", "CPU, s", "memory, MB", "p99 alone, ms", "p99", "times",
        "longest wait",
    )  # fmt: skip
    for name, attack in ATTACKS.items():
        if not wanted or any(part in name for part in wanted):
            table.add_row(name, *measure(base_path, attack))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
