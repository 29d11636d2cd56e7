"""A REST body takes a small multiple of its size in memory, and none if it is refused."""

import gzip
import http.client
import json
from collections.abc import Iterator
from pathlib import Path

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


def test_all_bodies_together_have_a_limit(base_path: Path) -> None:
    """RequestMemory covers which of several bodies is refused."""
    flags = [*FLAGS, f"--max_rest_bytes={28 * MB}"]
    with ServerProcess("totals", base_path, flags) as server:
        code, answer = ask(server, "totals", body_of("floats", b"0.25", 30 * MB, "inputs"))
        assert code == 413
        assert f"more than {21 * MB} bytes" in answer["error"]
        assert ask(server, "totals", body_of("floats", b"0.25", 8 * MB, "inputs"))[0] == 200
