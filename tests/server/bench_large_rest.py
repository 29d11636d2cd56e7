"""Large REST bodies: what they take in memory, and how long a gRPC client waits beside them.

[COLCAST_MODEL_SERVER=OTHER_SERVER] python -m tests.server.bench_large_rest
"""

import tempfile
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
from colcast.loadtest.process import ProcessMeter
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from .test_rest_memory import MB, WIDTH, Totals, ask, body_of, growth_while

BODIES = 3
VALUES = {"floats": (b"0.25", b"0"), "integers": (b"1234567", b"7"), "texts": (b'"some text"',)}


def print_memory(server: ServerProcess) -> None:
    """The growth of the peak, as a multiple of the body."""
    cases = [("nobody", "floats", b"0.25", 16)]
    cases += [("totals", name, value, 48) for name, values in VALUES.items() for value in values]
    cases += [("totals", "floats", b"0.25", 255)]
    for model, signature, value, size in cases:
        body = body_of(signature, value, size * MB, "inputs")
        meter = ProcessMeter(server.pid)
        cpu = meter.cpu_seconds()
        code, grown = growth_while(server, model, body)
        print(
            f"{model} {signature} {value.decode()}, {size} MB: {code}, {grown / MB:.0f} MB, "
            f"{grown / len(body):.2f} times the body, {meter.cpu_seconds() - cpu:.2f} CPU s"
        )


def grpc_waits(server: ServerProcess, done: threading.Event) -> list[float]:
    """How long each of one client's small requests took, until the event is set."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "totals"
    request.model_spec.signature_name = "floats"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.ones((1, WIDTH), np.float32)))
    waits = []
    with grpc.insecure_channel(server.target) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while not done.is_set():
            start = time.perf_counter()
            stub.Predict(request, timeout=120)
            waits.append(time.perf_counter() - start)
    return waits


def print_waits(server: ServerProcess) -> None:
    """A gRPC client's requests alone for two seconds, then beside the bodies."""
    alone = threading.Event()
    threading.Timer(2, alone.set).start()
    print_longest("alone", grpc_waits(server, alone))
    body = body_of("integers", b"7", 48 * MB, "inputs")
    done = threading.Event()
    clients = [threading.Thread(target=ask, args=(server, "totals", body)) for _ in range(BODIES)]

    def send() -> None:
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        done.set()

    start = time.perf_counter()
    threading.Thread(target=send).start()
    waits = grpc_waits(server, done)
    print_longest(f"beside {BODIES} bodies of 48 MB", waits)
    print(f"the bodies took {time.perf_counter() - start:.1f} s")


def print_longest(when: str, waits: list[float]) -> None:
    """One line."""
    p50, p99 = np.percentile(waits, [50, 99]) * 1000
    print(
        f"gRPC {when}: {len(waits)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
        f"longest {max(waits):.2f} s"
    )


def main() -> None:
    """Prints both."""
    with tempfile.TemporaryDirectory() as path:
        module = Totals()
        signatures = {name: getattr(module, name) for name in VALUES}
        tf.saved_model.save(module, f"{path}/1", signatures=signatures)
        with ServerProcess("totals", path, ["--rest_api_port=-1"]) as server:
            for signature, values in VALUES.items():
                ask(server, "totals", body_of(signature, values[0], 1, "inputs"))
            print_waits(server)
            print_memory(server)


if __name__ == "__main__":
    main()
