"""A closed loop of h2load's, on the native server."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from colcast.client import RankingClient
from colcast.loadtest import h2load
from colcast.loadtest.connection import PREDICT, Request
from colcast.loadtest.generated import generated
from colcast.server import ServerProcess

pytestmark = pytest.mark.skipif(not h2load.is_installed(), reason="h2load is not installed")


@pytest.fixture(scope="module", name="server")
def _server(exported: Path) -> Iterator[ServerProcess]:
    with ServerProcess("small", exported) as server:
        yield server


def requests(server: ServerProcess, *sizes: int) -> list[Request]:
    with RankingClient(server.target, "small") as client:
        return [
            Request(client.encode(data.user, data.items, target="late"), data.rows)
            for data in generated(client.schema(), sizes, seed=0)
        ]


def test_every_client_sends_its_request_again_and_again(server: ServerProcess):
    sent = requests(server, 5, 5)
    recording = h2load.closed_loop(server.target, sent, clients_each=3, seconds=1)
    assert recording.errors == 0
    assert len(recording.calls) > 2 * 3
    assert recording.per_second == len(recording.calls)
    assert {call.request_bytes for call in recording.calls} == {len(one.payload) for one in sent}
    assert all(0 < call.answered - call.sent < 30 for call in recording.calls)
    assert all(-1 < call.sent < 30 for call in recording.calls)


def test_answers_that_cannot_be_told_from_errors_are_refused(server: ServerProcess):
    with pytest.raises(ValueError, match="to be of one size"):
        h2load.closed_loop(server.target, requests(server, 5, 6), clients_each=1, seconds=1)


def test_a_request_that_the_server_refuses_is_not_sent_again(server: ServerProcess):
    with pytest.raises(ValueError, match="INVALID_ARGUMENT"):
        h2load.closed_loop(server.target, [Request(b"nonsense", 1, PREDICT)], 1, seconds=1)


@pytest.mark.parametrize(
    ("lost", "data", "calls", "message"),
    [
        ("0 failed, 0 errored, 0 timeout", 30, 3, "3 answers are 30 bytes, not 15 each"),
        ("0 failed, 2 errored, 0 timeout", 45, 3, "3 answers; 0 failed, 2 errored"),
        ("0 failed, 0 errored, 0 timeout", 0, 0, "0 answers"),
        ("0 failed, 0 errored, 0 timeout", 90, 3, "3 answers are 90 bytes"),
        ("0 failed, 0 errored, 0 timeout", 60, 3, ""),
    ],
    ids=["errors", "lost", "none", "too much", "one on its way"],
)
def test_errors_among_the_answers_are_seen(lost: str, data: int, calls: int, message: str):
    printed = f"requests: 3 total, {lost}\ntraffic: 1KB (90) total, {data}B ({data}) data"
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        h2load._check(printed, calls, size=10, clients=2)
