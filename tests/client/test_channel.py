"""How a server is reached: addresses, TLS, and settings that cannot work."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import ChannelOptions, InputError, ModelSchema, RankingClient, ServerError, Tls
from colcast.client.transport._channel import Lookup, channel_arguments, servers_at

from .test_transport import metadata


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
def test_the_servers_at_an_address(address: Any, servers: list[str]) -> None:
    found = servers_at(address)
    assert not isinstance(found, Lookup)
    assert list(found) == servers


def test_a_name_with_several_servers_is_looked_up_and_still_told() -> None:
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
def test_whose_certificate_is_expected(
    address: Any, server_name: str | None, expected: str | None
) -> None:
    arguments = channel_arguments(ChannelOptions(tls=Tls(server_name=server_name)), address)
    assert dict(arguments).get("grpc.ssl_target_name_override") == expected


def certificate(folder: Path, name: str, issuer: str = "") -> None:
    """Makes folder/name.key and folder/name.pem, signed by the issuer or by itself."""
    files = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
    signed = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key"] if issuer else []
    names = ["-addext", "subjectAltName=DNS:localhost"] if issuer else []
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *files, *signed, *names], cwd=folder, check=True, capture_output=True)


def test_mutual_tls(scripted: Any, schema: ModelSchema, tmp_path: Path) -> None:
    certificate(tmp_path, "authority")
    certificate(tmp_path, "server", issuer="authority")
    certificate(tmp_path, "client", issuer="authority")
    read = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    credentials = grpc.ssl_server_credentials(
        [(read["server.key"], read["server.pem"])], read["authority.pem"], True
    )
    server = scripted(credentials=credentials, GetModelMetadata=lambda *_: metadata(schema))
    ours = Tls(tmp_path / "authority.pem", tmp_path / "client.key", tmp_path / "client.pem")
    named = replace(ours, server_name="localhost")
    with RankingClient(
        server.address, "movies", channel=ChannelOptions(tls=named), timeout_seconds=120
    ) as client:
        assert client.schema().version == 3
    unknown = ChannelOptions(tls=Tls(tmp_path / "authority.pem", server_name="localhost"))
    with (
        RankingClient(server.address, "movies", channel=unknown, timeout_seconds=0.5) as client,
        pytest.raises(ServerError, match="UNAVAILABLE"),
    ):
        client.schema()


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(private_key="a.key"), "mutual TLS needs both private_key and certificate_chain"),
        (Tls(root_certificates="no/such.pem"), "cannot read no/such.pem: No such file"),
    ],
)
def test_tls_that_cannot_work(tls: Tls, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingClient("127.0.0.1:1", "movies", channel=ChannelOptions(tls=tls))


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
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingClient(**{"address": "127.0.0.1:1", "model": "movies", **settings})


def test_a_load_bound_that_no_server_could_keep() -> None:
    with pytest.raises(InputError, match="load_bound must be at least 1, got"):
        ChannelOptions(load_bound=0.9)
