"""A DNS name with several servers: each is one, and who comes or goes is noticed."""

import socket
from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError
from colcast.client.transport._channel import Lookup, addresses_of
from colcast.client.transport._servers import Servers, home

from .conftest import ITEMS, USER
from .test_restart import answering

ALWAYS = float("inf")


def always_up() -> grpc.ChannelConnectivity:
    return grpc.ChannelConnectivity.READY


def test_a_name_has_addresses_of_one_family() -> None:
    found = addresses_of("localhost", 8500)
    assert found
    assert set(found) <= {"127.0.0.1:8500"} or set(found) <= {"[::1]:8500"}


def test_a_server_behind_a_name_is_asked(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(**answering(schema))
    with RankingClient(f"dns:///localhost:{server.port}", "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]


def test_a_name_that_nobody_has_is_told() -> None:
    with (
        RankingClient("dns:///ranker.invalid:1", "movies", timeout_seconds=0.5) as client,
        pytest.raises(ServerError, match=r"UNAVAILABLE .*: cannot resolve 'ranker\.invalid'") as no,
    ):
        client.schema()
    assert no.value.attempts == 0


def test_servers_that_a_name_gains_and_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was in flight where a server is gone may end; its users go to the others."""
    monkeypatch.setattr("colcast.client.transport._channel._SECONDS", 0.0)
    behind = [["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"]]

    def look_up(host: str, port: int) -> list[str]:
        assert (host, port) == ("ranker", 1)
        if not behind[0]:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return behind[0]

    servers = Servers(Lookup("ranker", 1, look_up), ALWAYS, str, lambda _: always_up)
    assert servers.home("user") == ""

    def asked() -> str:
        server = servers.take("user")
        if server is None:
            return ""
        servers.give_back(server)
        return server.address

    while not asked():
        pass
    first = asked()
    assert first == home("user", behind[0])
    held = servers.take("user")
    behind[0] = [one for one in behind[0] if one != first]
    while asked() == first:
        pass
    assert asked() == home("user", behind[0])
    assert held is not None
    servers.give_back(held)
    behind[0] = []  # DNS is down: those that were known stay
    for _ in range(20):
        assert asked()
    behind[0] = [first, "10.0.0.9:1"]
    while asked() != home("user", behind[0]):
        pass
