"""TLS and mutual TLS with a throw-away authority, and ways to get --ssl_config_file wrong."""

import contextlib
import http.client
import socket
import ssl
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
from colcast.client import ChannelOptions, RankingClient, ServerError, Tls
from colcast.client.transport._channel import speaks_tls
from colcast.server import ServerProcess
from tensorflow_serving.apis import prediction_service_pb2_grpc

from ..waiting import wait_until
from .tls import Authority, Identity, config_flag, replace


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "theirs")


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server")


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory, ranker_base_path, identity):
    flag = config_flag(tmp_path_factory.mktemp("config") / "tls.cfg", identity)
    with ServerProcess("ranker", ranker_base_path, [flag, "--rest_api_port=-1"]) as server:
        yield server


@pytest.fixture(scope="module")
def mutual_tls_server(tmp_path_factory, ranker_base_path, identity, authority):
    path = tmp_path_factory.mktemp("config") / "mtls.cfg"
    flag = config_flag(path, identity, custom_ca=authority.root.read_text(), client_verify=True)
    flags = [flag, "--rest_api_port=-1", "--caller_certificate"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        server.tls_config = path
        yield server


def rank(server: ServerProcess, tls: Tls | None, timeout_seconds: float = 20) -> np.ndarray:
    """Ranks three items for one user with this repository's client; returns the scores."""
    channel = ChannelOptions(tls=tls)
    settings = {"channel": channel, "timeout_seconds": timeout_seconds}
    with RankingClient(server.target, "ranker", **settings) as client:
        user = {"user": np.float32(2), "user_name": "ann"}
        items = [{"item": np.float32(i), "item_name": "x"} for i in (1, 2, 3)]
        return client.rank(user=user, items=items).scores


def code_of_call(server, request, credentials):
    """Calls Predict with TF Serving's stub; returns the status code."""
    with grpc.secure_channel(server.target, credentials) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        return stub.Predict.future(request, timeout=120).code()


@pytest.fixture
def request_of_ranker(stubs, ranker_inputs):
    return stubs.request(ranker_inputs)


def test_the_health_check_tells_a_server_with_tls_from_a_dead_one(tls_server, mutual_tls_server):
    check = Path(__file__).parents[2] / "deploy" / "healthcheck.sh"
    for server in (tls_server, mutual_tls_server):
        port = server.rest_target.rpartition(":")[2]
        assert subprocess.run([check, port], timeout=120).returncode == 0
    assert subprocess.run([check, "1"], timeout=120, capture_output=True).returncode != 0


def test_a_client_of_another_authority_refuses_the_server(tls_server, stranger, request_of_ranker):
    credentials = grpc.ssl_channel_credentials(stranger.root.read_bytes())
    code = code_of_call(tls_server, request_of_ranker, credentials)
    assert code == grpc.StatusCode.UNAVAILABLE


def test_plain_text_is_not_answered(tls_server, connect, request_of_ranker):
    call = connect(tls_server.target).prediction.Predict.future(request_of_ranker, timeout=120)
    assert call.code() == grpc.StatusCode.UNAVAILABLE


def test_our_client_without_tls_gets_a_hint_and_the_log_warns_once(tls_server):
    for _ in range(2):
        with pytest.raises(ServerError, match=r"UNAVAILABLE.*the port speaks TLS: .*tls=Tls"):
            rank(tls_server, None, timeout_seconds=1)
    assert tls_server.log().count("a client without TLS has connected") == 1


def test_a_server_that_wants_a_certificate_speaks_tls(mutual_tls_server):
    with pytest.raises(ServerError, match="the port speaks TLS"):
        rank(mutual_tls_server, None, timeout_seconds=1)


def test_servers_that_are_down_or_use_plain_text_get_no_hint(server):
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{gone.getsockname()[1]}"
    with (
        RankingClient(target, "ranker", timeout_seconds=1) as client,
        pytest.raises(ServerError) as raised,
    ):
        client.schema()
    assert "TLS" not in str(raised.value)
    assert not speaks_tls(server.target)


@pytest.mark.parametrize(
    ("who", "expected"),
    [("ours", "OK"), ("nobody", "UNAVAILABLE"), ("theirs", "UNAVAILABLE")],
)
def test_mutual_tls_requires_a_certificate_of_its_own_authority(
    mutual_tls_server, authority, stranger, request_of_ranker, who, expected
):
    pairs = {"ours": authority.issue("client").pem, "theirs": stranger.issue("client").pem}
    credentials = grpc.ssl_channel_credentials(
        authority.root.read_bytes(), *pairs.get(who, (None, None))
    )
    assert code_of_call(mutual_tls_server, request_of_ranker, credentials).name == expected


def rest_code(server: ServerProcess, trusted: Path, own: Identity | None = None) -> int:
    """Requests a model's status over HTTPS; returns the HTTP code."""
    context = ssl.create_default_context(cafile=trusted)
    if own is not None:
        context.load_cert_chain(own.chain, own.key)
    connection = http.client.HTTPSConnection(server.rest_target, timeout=120, context=context)
    connection.request("GET", "/v1/models/ranker")
    return connection.getresponse().status


def test_rest_speaks_tls(tls_server, authority, stranger):
    assert rest_code(tls_server, authority.root) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        rest_code(tls_server, stranger.root)


def test_rest_speaks_mutual_tls(mutual_tls_server, authority, stranger):
    assert rest_code(mutual_tls_server, authority.root, authority.issue("web")) == 200
    for own in (None, stranger.issue("web")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            rest_code(mutual_tls_server, authority.root, own)


def resumed(server: ServerProcess, context: ssl.SSLContext, session: ssl.SSLSession | None):
    """Connects; returns (whether the session was resumed, the session to resume, the HTTP code)."""
    host, _, port = server.rest_target.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as secured,
    ):
        secured.sendall(b"GET /v1/models/ranker HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: secured.recv(4096), b""))
        return secured.session_reused, secured.session, int(answer.split()[1])


def client_context(trusted: Path, own: Identity | None, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=trusted)
    context.minimum_version = context.maximum_version = version
    if own is not None:
        context.load_cert_chain(own.chain, own.key)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("mutual", [False, True])
def test_a_session_is_resumed(tls_server, mutual_tls_server, authority, version, mutual):
    server = mutual_tls_server if mutual else tls_server
    context = client_context(authority.root, authority.issue("again") if mutual else None, version)
    first, session, code = resumed(server, context, None)
    assert (first, code) == (False, 200)
    second, _, code = resumed(server, context, session)
    assert (second, code) == (True, 200)


def test_renewed_certificates_are_used_and_wrong_ones_are_not(
    mutual_tls_server, authority, stranger
):
    server, path = mutual_tls_server, mutual_tls_server.tls_config
    before, theirs = path.read_text(), stranger.issue("renewed")
    renewed = "new connections use the new certificates"
    old = client_context(authority.root, authority.issue("old"), ssl.TLSVersion.TLSv1_3)
    _, session, code = resumed(server, old, None)
    assert code == 200
    replace(path, "server_key: 'none'")
    wait_until(lambda: "so the old ones stay in use" in server.log())
    assert rest_code(server, authority.root, authority.issue("web")) == 200
    config_flag(path, theirs, custom_ca=stranger.root.read_text(), client_verify=True)
    wait_until(lambda: renewed in server.log())
    assert rest_code(server, stranger.root, stranger.issue("web")) == 200
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    # The session was accepted under other authorities, so it is not resumed, either.
    with pytest.raises((ssl.SSLError, ConnectionError)):
        resumed(server, old, session)
    replace(path, before)
    wait_until(lambda: server.log().count(renewed) >= 2)


HINT = b'{ "error": "this port speaks TLS, but the request is plain HTTP: use https" }'


def answer_to(server: ServerProcess, *pieces: bytes, half_closed: bool = False) -> bytes:
    """Sends these pieces to the HTTP port; returns everything that it answers until it closes."""
    host, _, port = server.rest_target.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        if half_closed:
            with contextlib.suppress(OSError):  # the server has hung up already
                connection.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_plain_http_gets_a_hint_that_the_port_speaks_tls(tls_server, mutual_tls_server, method):
    for server in (tls_server, mutual_tls_server):
        connection = http.client.HTTPConnection(server.rest_target, timeout=120)
        connection.request(method, "/v1/models/ranker", body=b"x" * 100_000)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (400, "close")
        assert answer.getheader("Content-Type") == "application/json"
        assert answer.read() == HINT
        assert connection.sock is None  # the server has closed the connection


def test_plain_http_byte_by_byte_gets_one_hint(tls_server, authority):
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    one_by_one = [bytes([byte]) for byte in request[:5]]
    assert answer_to(tls_server, *one_by_one).endswith(HINT)
    answer = answer_to(tls_server, request * 3)
    assert answer.endswith(HINT)
    assert answer.count(b"HTTP/1.1") == 1
    assert rest_code(tls_server, authority.root) == 200


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GE",
        b"GETTING / HTTP/1.1\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\x0eGET / HTTP/1.1",
        b"\x16\x03\x01\xff\xffGET / HTTP/1.1\r\n\r\n",
        b"\x80\x2eGET / HTTP/1.1\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x01\x00GET / HTTP/1.1\r\n\r\n",
        bytes(range(256)) * 100,
    ],
)
def test_neither_tls_nor_http_gets_a_plain_answer(tls_server, authority, said):
    answer = answer_to(tls_server, said, half_closed=True)
    assert answer[:1] in (b"", b"\x15")  # nothing, or a TLS alert
    assert b"HTTP" not in answer
    assert rest_code(tls_server, authority.root) == 200


def test_plain_text_within_tls_handshakes_is_not_answered_in_clear(tls_server, authority):
    context = ssl.create_default_context(cafile=authority.root)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    half = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    answer = answer_to(tls_server, outgoing.read(), b"GET / HTTP/1.1\r\n\r\n")
    assert answer[:1] == b"\x16"  # a TLS handshake record
    assert HINT not in answer


def test_our_client_speaks_tls(tls_server, authority):
    scores = rank(tls_server, Tls(root_certificates=authority.root))
    np.testing.assert_array_equal(scores, [201, 202, 203])


def test_a_wrong_field_is_named(mutual_tls_server, identity, authority):
    """Here the file changes while the server runs; TlsConfigTest covers its start."""
    path, chain = mutual_tls_server.tls_config, identity.chain.read_text()
    before = path.read_text()
    for fields, words in (
        ({"server_cert": "none"}, "server_cert is not a list of PEM certificates"),
        ({"client_verify": True, "custom_ca": "?"}, "custom_ca is not a list of PEM certificates"),
        ({"server_cert": chain[:-100]}, "server_cert is not a list of PEM certificates"),
        (
            {"server_key": authority.issue("other").key.read_text()},
            "server_key is not the key of server_cert",
        ),
    ):
        said = f"{path}: {words}"
        earlier = mutual_tls_server.log().count(said)
        config_flag(path, identity, **fields)
        wait_until(lambda s=said, n=earlier: mutual_tls_server.log().count(s) > n)
    replace(path, before)
