"""How a server is reached: addresses, TLS, and settings that cannot work."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import ChannelOptions, InputError, ModelSchema, RankingClient, ServerError, Tls
from colcast.client._channel import channel_arguments, grpc_target

from .test_transport import metadata


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("ranker.internal:8500", "ranker.internal:8500"),
        ("127.0.0.1:1,127.0.0.2:2", "ipv4:127.0.0.1:1,127.0.0.2:2"),
        (["127.0.0.1:1", "localhost:2"], "ipv4:127.0.0.1:1,127.0.0.1:2"),
        (["[::1]:1", "[::1]:2"], "ipv6:[::1]:1,[::1]:2"),
        ("unix:/run/ranker.sock", "unix:/run/ranker.sock"),
    ],
)
def test_addresses_as_grpc_names_them(address: Any, target: str) -> None:
    assert grpc_target(address) == target


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
        ({"address": ["127.0.0.1:1", "[::1]:1"]}, "not all reachable by IPv4, nor all by IPv6"),
        ({"address": ["a.invalid:1", "b.invalid:1"]}, "cannot resolve 'a.invalid:1'"),
        ({"timeout_seconds": 0}, "timeout_seconds must be above 0, got 0"),
        ({"target": "127.0.0.1:8500"}, "target must be one of .* is the first argument"),
        ({"dedupe": True}, "dedupe must be 'auto' or 'off', got True"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingClient(**{"address": "127.0.0.1:1", "model": "movies", **settings})
