"""A gRPC server with answers decided by a test, and colcast's own server with a small model."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.export import export_saved_model
from colcast.loadtest.measure.correctness import Check
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.run import Result
from colcast.loadtest.measure.search import Found, Sla, Verdict, Window
from colcast.loadtest.measure.series import Series, Target
from colcast.loadtest.report.report import Report
from colcast.loadtest.send.connection import Answer, Request
from colcast.server import ServerProcess
from colcast.zoo import wide

SMALL = wide.Wide(name="small", user_features=7, item_features=5, hidden=(8,))

Handler = Callable[[bytes, grpc.ServicerContext], bytes]


class _Everything(grpc.GenericRpcHandler):
    def __init__(self, handler: Handler) -> None:
        self._handler = grpc.unary_unary_rpc_method_handler(handler)

    def service(self, handler_call_details: Any) -> Any:
        return self._handler


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """A function that starts a server which answers with `handler(request bytes, context)`.

    It returns the target. `workers` is the number of requests that a server handles at once; the
    options are gRPC's.
    """
    servers = []

    def start(handler: Handler, workers: int = 4, **options: Any) -> str:
        server = grpc.server(
            ThreadPoolExecutor(workers),
            handlers=[_Everything(handler)],
            options=[("grpc.max_receive_message_length", -1), *options.items()],
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(grace=None).wait()


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of `small`, a model with tf.Example, columnar and late signatures."""
    folder = tmp_path_factory.mktemp("served")
    original = wide.ensure(SMALL, folder)
    export_saved_model(
        original / "1", folder / "columnar" / "1", user_features=["user_*"], late=True
    )
    return folder / "columnar"


@pytest.fixture(scope="session")
def served(exported: Path) -> Iterator[ServerProcess]:
    """The native server with the model `small`."""
    with ServerProcess("small", exported) as server:
        yield server


FORMATS = ("example", "repeated", "columnar")
RATES = {"example": 400.0, "repeated": 600.0, "columnar": 1000.0}


def recording(seed: int, milliseconds: float, payload: int, errors: int = 0) -> Recording:
    """A recording of two thousand calls over ten seconds; latencies are gamma distributed."""
    random = np.random.default_rng(seed)
    found = Recording(wall_seconds=10.0, server_cpu_seconds=2.0 * milliseconds)
    request = Request(bytes(payload), rows=200)
    for number, latency in enumerate(random.gamma(4, milliseconds / 4000, 2000)):
        due = number / 200
        code = "RESOURCE_EXHAUSTED" if number < errors else "OK"
        answer = Answer(code, bytes(800), "the queue is full" * (code != "OK"), due, due + latency)
        found.add(request, answer, 0.0, due)
    return found


def report(*, wrong: int = 0, errors: int = 0, with_search: bool = True) -> Report:
    """A report on `example`, `repeated` and `columnar`, each faster than the previous one."""
    results = []
    for place, name in enumerate(FORMATS):
        milliseconds = (8.0, 5.0, 3.0)[place]
        series = Series(Target("", "127.0.0.1:8500"), name, [Request(b"", 200)])
        windows = tuple(
            Window(rate, milliseconds * (1 + rate / 500), Verdict.HOLDS)
            for rate in (50, 100, 200, RATES[name])
        )
        again = (Window(RATES[name], milliseconds, Verdict.HOLDS),)
        found = Found(RATES[name], windows, False, again, confirmed=True)
        results.append(
            Result(
                series,
                recording(place, milliseconds, 100_000 // (place + 1), errors * (place == 0)),
                Check(200, wrong * (place == 2), 0.25 if wrong else 0.0),
                memory_bytes=300 << 20,
                found=found if with_search else None,
            )
        )
    settings = {"command": "colcast loadtest <&>", "model": "movies", "load": "200 per second"}
    sizes = [100] * 2 + [200] * 12 + [300] * 2 + [400, 500, 600, 700]
    sla = Sla(95, 25.0) if with_search else None
    return Report(settings, results, sizes, sla, machine="a test machine")
