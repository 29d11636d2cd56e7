"""Connections to servers: addresses, names with several servers, TLS, spans, wrong settings."""

import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import ChannelOptions, InputError, RankingClient, ServerError, Tls
from colcast.client.transport._channel import Lookup, addresses_of, channel_arguments, servers_at
from colcast.client.transport._servers import Servers, home

from ..server.tls import Authority
from .conftest import ITEMS, USER, client_of, unavailable_until


@pytest.mark.parametrize(
    ("address", "servers"),
    [
        ("ranker.internal:8500", ["ranker.internal:8500"]),
        ("127.0.0.1:1,127.0.0.2:2", ["127.0.0.1:1", "127.0.0.2:2"]),
        (["127.0.0.1:1", "localhost:2", "127.0.0.1:1"], ["127.0.0.1:1", "localhost:2"]),
        (["127.0.0.1:1", "[::1]:1"], ["127.0.0.1:1", "[::1]:1"]),
        ("unix:/run/ranker.sock", ["unix:/run/ranker.sock"]),
        ("dns://10.0.0.1/ranker:8500", ["dns://10.0.0.1/ranker:8500"]),
    ],
)
def test_the_servers_at_an_address(address: Any, servers: list[str]):
    found = servers_at(address)
    assert not isinstance(found, Lookup)
    assert list(found) == servers


def test_a_name_with_several_servers_is_looked_up_and_reported():
    assert isinstance(servers_at("dns:///ranker.internal:8500"), Lookup)
    found = dict(channel_arguments(ChannelOptions(tls=Tls()), "dns:///ranker.internal:8500"))
    assert found["grpc.default_authority"] == "ranker.internal:8500"
    assert found["grpc.ssl_target_name_override"] == "ranker.internal"


@pytest.mark.parametrize(
    ("address", "server_name", "expected"),
    [
        ("a.internal:1", None, None),
        ("a.internal:1", "ranker", "ranker"),
        (["a.internal:1", "b.internal:1"], None, "a.internal"),
        ("a.internal:1,b.internal:1", None, "a.internal"),
        (["a.internal:1", "b.internal:1"], "ranker", "ranker"),
    ],
)
def test_the_certificate_is_for_the_expected_name(
    address: Any, server_name: str | None, expected: str | None
):
    arguments = channel_arguments(ChannelOptions(tls=Tls(server_name=server_name)), address)
    assert dict(arguments).get("grpc.ssl_target_name_override") == expected


def test_mutual_tls(serves: Any, tmp_path: Path):
    authority = Authority(tmp_path, "authority")
    credentials = grpc.ssl_server_credentials(
        [authority.issue("server").pem], authority.root.read_bytes(), True
    )
    server, mine = serves(credentials=credentials), authority.issue("client")
    ours = Tls(authority.root, mine.key, mine.chain)
    named = replace(ours, server_name="localhost")
    with client_of(server, channel=ChannelOptions(tls=named)) as client:
        assert client.schema().version == 3
    unknown = ChannelOptions(tls=Tls(authority.root, server_name="localhost"))
    with (
        client_of(server, channel=unknown, timeout_seconds=0.5) as client,
        pytest.raises(ServerError, match="UNAVAILABLE"),
    ):
        client.schema()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"address": "localhost"}, "must be HOST:PORT, got 'localhost'"),
        ({"address": []}, "no address of a server"),
        ({"address": "dns:///ranker"}, "expected one dns:///NAME:PORT, .* got 'dns:///ranker'"),
        ({"address": ["dns:///a:1", "dns:///b:1"]}, "expected one dns:///NAME:PORT"),
        ({"timeout_seconds": 0}, "timeout_seconds must be above 0, got 0"),
        ({"target": "127.0.0.1:8500"}, "target must be one of .* is the first argument"),
        ({"dedupe": True}, "dedupe must be 'auto' or 'off', got True"),
        ({"affinity": "on"}, "affinity must be 'auto' or 'off', got 'on'"),
        ({"affinity_secret": "x" * 65}, "affinity_secret must be at most 64 bytes"),
        (
            {"channel": ChannelOptions(tls=Tls(private_key="a.key"))},
            "mutual TLS needs both private_key and certificate_chain",
        ),
        (
            {"channel": ChannelOptions(tls=Tls(root_certificates="no/such.pem"))},
            "cannot read no/such.pem: No such file",
        ),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        RankingClient(**{"address": "127.0.0.1:1", "model": "movies", **settings})


def test_a_load_bound_that_no_server_could_keep():
    with pytest.raises(InputError, match="load_bound must be at least 1, got"):
        ChannelOptions(load_bound=0.9)


ALWAYS = float("inf")


def always_up() -> grpc.ChannelConnectivity:
    return grpc.ChannelConnectivity.READY


def test_a_name_has_addresses_of_one_family():
    found = addresses_of("localhost", 8500)
    assert found
    assert set(found) <= {"127.0.0.1:8500"} or set(found) <= {"[::1]:8500"}


def test_a_server_behind_a_name_is_asked(serves: Any):
    server = serves()
    with RankingClient(f"dns:///localhost:{server.port}", "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]


def test_an_unknown_name_is_reported():
    with (
        RankingClient("dns:///ranker.invalid:1", "movies", timeout_seconds=0.5) as client,
        pytest.raises(ServerError, match=r"UNAVAILABLE .*: cannot resolve 'ranker\.invalid'") as no,
    ):
        client.schema()
    assert no.value.attempts == 0


def test_servers_that_a_name_gains_and_loses(monkeypatch: pytest.MonkeyPatch):
    """Calls in flight to a removed server may finish; its users move to the other servers."""
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
    behind[0] = []  # if DNS is down, known addresses stay
    for _ in range(20):
        assert asked()
    behind[0] = [first, "10.0.0.9:1"]
    while asked() != home("user", behind[0]):
        pass


@pytest.mark.parametrize(("bound", "expected"), [(1.0, [3, 3]), (1.25, [2, 4])])
def test_a_user_whose_server_is_busy_goes_elsewhere(bound: float, expected: list[int]):
    """Six calls are in flight on two servers."""
    servers = Servers(["10.0.0.1:1", "10.0.0.2:1"], bound, str, lambda _: always_up)
    taken = [servers.take("user") for _ in range(6)]
    counts = Counter(one.address for one in taken if one is not None)
    assert sorted(counts.values()) == expected


def test_only_the_first_attempt_goes_to_a_named_server():
    addresses = ["10.0.0.1:1", "10.0.0.2:1"]
    servers = Servers(addresses, ALWAYS, str, lambda _: always_up)
    for first, other in (addresses, addresses[::-1]):
        one, two = servers.take("user", first=first), servers.take("user", [first], first)
        assert one is not None
        assert two is not None
        assert [one.address, two.address] == [first, other]


sdk = pytest.importorskip("opentelemetry.sdk.trace")


@pytest.fixture(scope="module")
def exporter() -> Any:
    """An OpenTelemetry exporter that keeps spans in memory."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


def test_a_span_says_what_was_asked_and_travels_with_it(serves: Any, exporter: Any):
    exporter.clear()
    server = serves()
    with client_of(server) as client:
        client.rank(USER, [{**item, "poster_url": "x"} for item in ITEMS])
    (span,) = exporter.get_finished_spans()
    assert span.name == "colcast.rank"
    expected = {
        "rpc.system": "grpc",
        "server.address": server.address,
        "colcast.model": "movies",
        "colcast.target": "late",
        "colcast.candidates": 3,
        "colcast.columns_not_sent": 1,
        "colcast.attempts": 1,
    }
    assert expected.items() <= dict(span.attributes).items()
    traceparent = server.requests[-1][2]["traceparent"]
    assert f"{span.context.trace_id:032x}-{span.context.span_id:016x}" in traceparent


def test_a_failure_is_recorded(serves: Any, exporter: Any):
    exporter.clear()
    server = serves(predict=unavailable_until(10**6, None))
    with client_of(server) as client, pytest.raises(ServerError):
        client.rank(USER, ITEMS, timeout_seconds=0.1)
    (span,) = exporter.get_finished_spans()
    assert span.attributes["rpc.grpc.status_code"] == "UNAVAILABLE"
    assert not span.status.is_ok
