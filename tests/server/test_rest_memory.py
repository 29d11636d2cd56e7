"""A REST body takes a small multiple of its size in memory, and none if it is refused."""

import contextlib
import gzip
import http.client
import json
import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess

from .. import models
from ..models._served import TOTALS_WIDTH as WIDTH

MB = 1_000_000
FLAGS = ["--rest_api_port=-1", "--rest_api_timeout_in_ms=0"]


@pytest.fixture(name="base_path", scope="module")
def _base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("totals")
    models.build("totals", path / "1")
    return path


@pytest.fixture(name="server", scope="module")
def _server(base_path: Path) -> Iterator[ServerProcess]:
    with pytest.MonkeyPatch.context() as environment:
        # The allocator returns freed memory immediately, so the peak is what is held at one time.
        environment.setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        with ServerProcess("totals", base_path, FLAGS) as server:
            for signature, value in (("floats", b"0.5"), ("integers", b"7"), ("texts", b'"a"')):
                assert ask(server, "totals", body_of(signature, value, 1, "inputs"))[0] == 200
            yield server


def body_of(signature: str, value: bytes, size: int, key: str) -> bytes:
    """A request of about `size` bytes in which one value repeats."""
    row = b"[" + b",".join([value] * WIDTH) + b"]"
    rows = b",".join([row] * max(1, size // (len(row) + 1)))
    return b'{"signature_name": "%s", "%s": [%s]}' % (signature.encode(), key.encode(), rows)


def ask(server: ServerProcess, model: str, body: bytes) -> tuple[int, dict]:
    """Sends a body, with Content-Encoding if it is gzip; returns the code and the JSON."""
    connection = http.client.HTTPConnection(server.rest_target, timeout=300)
    headers = {"Content-Encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {}
    connection.request("POST", f"/v1/models/{model}:predict", body, headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


def growth_while(server: ServerProcess, model: str, body: bytes) -> tuple[int, int]:
    """Sends a body; returns the code, and by how many bytes the peak exceeded the memory before."""
    meter = ProcessMeter(server.pid)
    before = meter.memory_bytes()
    meter.forget_peak()
    code, _ = ask(server, model, body)
    return code, meter.peak_memory_bytes() - before


def test_a_body_that_no_model_wants_is_not_kept(server: ServerProcess) -> None:
    body = body_of("floats", b"0.25", 16 * MB, "inputs")
    code, grown = growth_while(server, "nobody", body)
    assert code == 404
    assert grown < 4 * MB, f"{grown / len(body):.1f} times the body"


@pytest.mark.parametrize("key", ["inputs", "instances"])
@pytest.mark.parametrize(
    ("signature", "value", "factor"),
    [
        ("floats", b"0.25", 2.2),
        ("floats", b"0", 4.4),  # 2 bytes of text become 4 in the column and 4 in the tensor
        ("integers", b"1234567", 2.4),
        ("integers", b"7", 8.4),  # 2 bytes of text become 8 and 8
        ("texts", b'"some text"', 3.4),  # each string in the tensor takes 24 bytes
    ],
)
def test_a_body_takes_a_small_multiple_of_its_size(
    server: ServerProcess, key: str, signature: str, value: bytes, factor: float
) -> None:
    body = body_of(signature, value, 48 * MB, key)
    code, grown = growth_while(server, "totals", body)
    assert code == 200
    assert grown < factor * len(body), f"{grown / len(body):.2f} times the body"


@pytest.mark.parametrize("key", ["inputs", "instances"])
def test_more_rows_than_allowed_are_inflated_but_not_kept(base_path: Path, key: str) -> None:
    text = body_of("integers", b"7", 48 * MB, key)
    body = gzip.compress(text, compresslevel=1)
    with ServerProcess("totals", base_path, [*FLAGS, "--max_request_rows=100"]) as server:
        code, grown = growth_while(server, "totals", body)
        assert code == 429
        assert grown < 1.3 * len(text)
        assert (
            "more rows than max_request_rows, which is 100"
            in ask(server, "totals", body)[1]["error"]
        )


def is_read(connection: socket.socket) -> bool:
    """Whether the other end has read everything that was sent."""
    ports = {connection.getsockname()[1], connection.getpeername()[1]}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        ends = {int(end.rpartition(":")[2], 16) for end in (local, remote)}
        if ends == ports and queues != "00000000:00000000":
            return False
    return True


def test_all_bodies_together_have_a_limit(
    base_path: Path, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    flags = [*FLAGS, f"--max_rest_bytes={28 * MB}"]
    short = body_of("floats", b"0.25", 8 * MB, "inputs")
    with ServerProcess("totals", base_path, flags) as server:
        code, answer = ask(server, "totals", body_of("floats", b"0.25", 30 * MB, "inputs"))
        assert code == 413
        assert f"more than {21 * MB} bytes" in answer["error"]
        assert ask(server, "totals", short)[0] == 200
        host, port = server.rest_target.split(":")
        length = 15 * MB
        head = (
            b"POST /v1/models/totals:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            % length
        )
        with contextlib.ExitStack() as held:

            def has_the_room() -> bool:
                held.close()  # ends the previous attempt, in which the short body came first
                holder = socket.create_connection((host, int(port)), timeout=60)
                held.enter_context(holder)
                # The server may refuse while the client is still sending.
                with contextlib.suppress(OSError):
                    holder.sendall(head + b" " * (length - 1))  # all but one byte
                    wait_until(lambda: is_read(holder))
                    refused = "--max_rest_bytes" in ask(server, "totals", short)[1].get("error", "")
                    return refused and not select.select([holder], [], [], 0)[0]  # no answer
                return False

            wait_until(has_the_room)
            assert ask(server, "totals", short)[0] == 429
            assert ask(server, "nobody", short)[0] == 404
        wait_until(lambda: ask(server, "totals", short)[0] == 200)


def test_grpc_clients_are_answered_while_long_bodies_are_read(
    server: ServerProcess, connect: Any
) -> None:
    stubs = connect(server.target)
    bodies = [body_of("floats", b"0.25", 48 * MB, "instances")] * 3
    row = {"x": np.zeros([1, WIDTH], np.float32)}
    answered = 0
    with ThreadPoolExecutor(len(bodies)) as senders:
        answers = [senders.submit(ask, server, "totals", body) for body in bodies]
        while not all(answer.done() for answer in answers):
            stubs.predict(row, name="totals", signature_name="floats")
            answered += 1
    assert [answer.result()[0] for answer in answers] == [200] * len(bodies)
    assert answered > 10
