"""Large REST bodies: what they take in memory, and how long a gRPC client waits beside them.

[COLCAST_MODEL_SERVER=OTHER_SERVER] python -m tests.server.bench_large_rest
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.beside import BESIDE, GoingOn, alone_and_beside
from colcast.loadtest.connection import Connection, Request
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import Variant, measure_variants, other
from colcast.server import ServerProcess

from .. import models
from .test_rest_memory import MB, WIDTH, ask, body_of, growth_while

BODIES = 3
GROWTH = {"status": ".0f", "MB": ".0f", "of the body": ".2f", "CPU s": ".2f"}
VALUES = {"floats": (b"0.25", b"0"), "integers": (b"1234567", b"7"), "texts": (b'"some text"',)}


def memory(server: ServerProcess) -> Iterator[tuple[str, list[Variant]]]:
    """The growth of the peak while a body is read."""
    cases = [("nobody", "floats", b"0.25", 16)]
    cases += [("totals", name, value, 48) for name, values in VALUES.items() for value in values]
    cases += [("totals", "floats", b"0.25", 255)]

    def turn(number: int, model: str, body: bytes) -> Recording:
        meter, recording = ProcessMeter(server.pid), Recording()
        if number < 0:
            return recording
        cpu = meter.cpu_seconds()
        code, grown = growth_while(server, model, body)
        recording.others = {"status": code, "MB": grown / MB, "of the body": grown / len(body)}
        recording.others["CPU s"] = meter.cpu_seconds() - cpu
        return recording

    for model, signature, value, size in cases:
        body = body_of(signature, value, size * MB, "inputs")
        title = f"{model} {signature} {value.decode()}"
        yield f"{size} MB", [Variant(title, partial(turn, model=model, body=body))]


@contextmanager
def reading(server: ServerProcess, body: bytes) -> Iterator[GoingOn]:
    """While bodies are read."""
    with ThreadPoolExecutor(BODIES) as pool:
        asked = [pool.submit(ask, server, "totals", body) for _ in range(BODIES)]
        yield GoingOn(lambda done: not done or not all(it.done() for it in asked))


def main() -> None:
    """Prints both."""
    with tempfile.TemporaryDirectory() as path:
        models.build("totals", Path(path, "1"))
        with ServerProcess("totals", path, ["--rest_api_port=-1"]) as server:
            for signature, values in VALUES.items():
                ask(server, "totals", body_of(signature, values[0], 1, "inputs"))
            columns = [other(name, form) for name, form in GROWTH.items()]
            measure_variants(memory(server), 1, columns)
            inputs = {"x": np.ones((1, WIDTH), np.float32)}
            request = Request(encode_predict_request("totals", "floats", inputs), 1)
            bodies = partial(reading, server, body_of("integers", b"7", 48 * MB, "inputs"))
            with Connection(server.target, timeout_seconds=120) as connection:
                call, title = partial(connection.call, request), f"beside {BODIES} bodies of 48 MB"
                waits = alone_and_beside(call, bodies, server.pid, title=title)
                measure_variants([("gRPC", waits)], 1, BESIDE)


if __name__ == "__main__":
    main()
