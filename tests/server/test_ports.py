"""TLS with a throw-away authority, and Unix sockets."""

import contextlib
import errno
import http.client
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from colcast.client import ChannelOptions, RankingClient, ServerError, Tls
from colcast.client.transport._channel import speaks_tls
from colcast.server import ServerProcess, find_executable
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import prediction_service_pb2_grpc

from ..waiting import wait_until
from .servers import Stubs
from .tls import Authority, Identity, config_flag, replace

STATUS = "/v1/models/ranker"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "theirs")


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server")


@pytest.fixture(scope="module", name="tls_server")
def _tls_server(tmp_path_factory, ranker_base_path, identity) -> Iterator[ServerProcess]:
    flag = config_flag(tmp_path_factory.mktemp("config") / "tls.cfg", identity)
    with ServerProcess("ranker", ranker_base_path, [flag, "--rest_api_port=-1"]) as server:
        yield server


@pytest.fixture(scope="module")
def mutual_tls_server(tmp_path_factory, ranker_base_path, identity, authority):
    path = tmp_path_factory.mktemp("config") / "mtls.cfg"
    flag = config_flag(path, identity, custom_ca=authority.root.read_text(), client_verify=True)
    with ServerProcess("ranker", ranker_base_path, [flag, "--rest_api_port=-1"]) as server:
        server.tls_config = path
        yield server


def rank(server: ServerProcess, tls: Tls | None, timeout_seconds: float = 60) -> np.ndarray:
    """Ranks three items for one user with this repository's client; returns the scores."""
    channel = ChannelOptions(tls=tls)
    settings = {"channel": channel, "timeout_seconds": timeout_seconds}
    with RankingClient(server.target, "ranker", **settings) as client:
        user = {"user": np.float32(2), "user_name": "ann"}
        items = [{"item": np.float32(i), "item_name": "x"} for i in (1, 2, 3)]
        return client.rank(user=user, items=items).scores


def test_the_health_check_tells_a_server_with_tls_from_a_dead_one(tls_server, mutual_tls_server):
    check = Path(__file__).parents[2] / "deploy" / "healthcheck.sh"
    for server in (tls_server, mutual_tls_server):
        port = server.rest_target.rpartition(":")[2]
        assert subprocess.run([check, port], timeout=120).returncode == 0
    assert subprocess.run([check, "1"], timeout=120, capture_output=True).returncode != 0


def test_our_client_speaks_tls_and_without_it_gets_a_hint(
    tls_server, mutual_tls_server, authority, server
):
    scores = rank(tls_server, Tls(root_certificates=authority.root))
    np.testing.assert_array_equal(scores, [201, 202, 203])
    for secured in (tls_server, mutual_tls_server, tls_server):
        with pytest.raises(ServerError, match=r"UNAVAILABLE.*the port speaks TLS: .*tls=Tls"):
            rank(secured, None, timeout_seconds=2)
    assert tls_server.log().count("a client without TLS has connected") == 1
    assert not speaks_tls(server.target)


@pytest.mark.parametrize(
    ("who", "expected"),
    [("ours", "OK"), ("nobody", "UNAVAILABLE"), ("theirs", "UNAVAILABLE")],
)
def test_mutual_tls_requires_a_certificate_of_its_own_authority(
    mutual_tls_server, authority, stranger, stubs, ranker_inputs, who, expected
):
    own = {"ours": authority.issue("client"), "theirs": stranger.issue("client")}.get(who)
    pair = own.pem if own else (None, None)
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes(), *pair)
    with grpc.secure_channel(mutual_tls_server.target, credentials) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        call = stub.Predict.future(stubs.request(ranker_inputs), timeout=120)
        assert call.code().name == expected
    if who == "ours":
        assert rest_code(mutual_tls_server, authority.root, own) == 200
        return
    with pytest.raises((ssl.SSLError, ConnectionError)):
        rest_code(mutual_tls_server, authority.root, own)


def rest_code(server: ServerProcess, trusted: Path, own: Identity | None = None) -> int:
    """Requests a model's status over HTTPS; returns the HTTP code."""
    return get(server, STATUS, trusted, own).status


def get(
    server: ServerProcess, path: str, trusted: Path, own: Identity | None
) -> http.client.HTTPResponse:
    context = ssl.create_default_context(cafile=trusted)
    if own is not None:
        context.load_cert_chain(own.chain, own.key)
    connection = http.client.HTTPSConnection(server.rest_target, timeout=120, context=context)
    connection.request("GET", path)
    return connection.getresponse()


def resumed(server: ServerProcess, context: ssl.SSLContext, session: ssl.SSLSession | None):
    """Connects; returns (whether the session was resumed, the session to resume, the HTTP code)."""
    with (
        socket_to(server) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as secured,
    ):
        secured.sendall(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
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
    """TlsConfigTest covers every way in which a file may be wrong."""
    server, path = mutual_tls_server, mutual_tls_server.tls_config
    web = authority.issue("web")
    before, theirs = path.read_text(), stranger.issue("renewed")
    renewed = "new connections use the new certificates"
    old = client_context(authority.root, authority.issue("old"), ssl.TLSVersion.TLSv1_3)
    _, session, code = resumed(server, old, None)
    assert code == 200
    replace(path, "server_key: 'none'")
    refused = "so the old ones stay in use"
    wait_until(lambda: server.log().count(refused) == 1)
    for year, said in ((2020, "has expired"), (2099, "is not valid before")):
        unusable = authority.issue(str(year), year=year)
        config_flag(path, unusable, custom_ca=authority.root.read_text(), client_verify=True)
        wait_until(lambda said=said: server.log().count(said) == 1)
        lines = [line for line in server.log().splitlines() if said in line]
        assert all(" WARNING " in line and refused in line for line in lines)
    page = get(server, "/metrics", authority.root, web).read().decode()
    assert "\n:colcast:refused_certificates_total 3\n" in page
    assert get(server, STATUS, authority.root, web).status == 200
    config_flag(path, theirs, custom_ca=stranger.root.read_text(), client_verify=True)
    wait_until(lambda: renewed in server.log())
    assert rest_code(server, stranger.root, stranger.issue("web")) == 200
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    # The session was accepted under other authorities, so it is not resumed, either.
    with pytest.raises((ssl.SSLError, ConnectionError)):
        resumed(server, old, session)
    replace(path, before)
    wait_until(lambda: server.log().count(renewed) == 2)


HINT = b'{ "error": "this port speaks TLS, but the request is plain HTTP: use https" }'


def socket_to(server: ServerProcess) -> socket.socket:
    host, _, port = server.rest_target.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=120)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer_to(server: ServerProcess, *pieces: bytes, half_closed: bool = False) -> bytes:
    """Sends these pieces; returns everything that the server answers until it closes."""
    with socket_to(server) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if half_closed:
            with contextlib.suppress(OSError):  # the server has hung up already
                connection.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionResetError:
            return b""


def test_plain_http_gets_one_hint_that_the_port_speaks_tls(
    tls_server, mutual_tls_server, authority
):
    for server in (tls_server, mutual_tls_server):
        connection = http.client.HTTPConnection(server.rest_target, timeout=120)
        connection.request("POST", STATUS, body=b"x" * 100_000)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (400, "close")
        assert answer.getheader("Content-Type") == "application/json"
        assert answer.read() == HINT
        assert connection.sock is None  # the server has closed the connection
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
        b"GE",
        b"get / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\x0eGET / HTTP/1.1",
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


def test_rest_speaks_http1_whatever_a_client_offers(tls_server, authority):
    context = ssl.create_default_context(cafile=authority.root)
    for protocols in ([], ["http/1.1"], ["h2", "http/1.1"]):
        if protocols:
            context.set_alpn_protocols(protocols)
        connection = http.client.HTTPSConnection(
            tls_server.rest_target, timeout=60, context=context
        )
        with contextlib.closing(connection):
            connection.request("GET", STATUS)
            assert connection.getresponse().status == 200


def test_a_socket_that_was_left_is_replaced_and_answers_beside_the_port(
    tmp_path, monkeypatch, ranker_base_path, ranker_inputs
):
    """Also tests that settings of gRPC hold for both.

    A stopped server may have left the socket: its queue is full, so connecting would block.
    """
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    settings = [
        "--grpc_socket_path=s",
        "--grpc_channel_arguments=grpc.max_metadata_size=1024,grpc.keepalive_time_ms=60000",
        "--enable_grpc_healthcheck_service=false",
    ]
    with contextlib.ExitStack() as stack:
        left, waiting, turned_away = (
            stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3)
        )
        left.bind("s")
        left.listen(0)
        waiting.connect("s")
        turned_away.setblocking(False)
        assert turned_away.connect_ex("s") == errno.EAGAIN
        server = stack.enter_context(ServerProcess("ranker", ranker_base_path, settings))
        for target in ("unix:s", server.target):
            stubs = Stubs(target)
            np.testing.assert_array_equal(stubs.predict(ranker_inputs)["score"], [201, 202, 203])
            request, metadata = stubs.request(ranker_inputs), [("trace", "x" * 4096)]
            call = stubs.prediction.Predict.future(request, timeout=120, metadata=metadata)
            assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            health = health_pb2_grpc.HealthStub(stubs.channel)
            check = health.Check.future(health_pb2.HealthCheckRequest(), timeout=120)
            assert check.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("path", "words"), [("file", "the file file is not a socket"), ("s" * 108, "at most 107")]
)
def test_a_path_that_cannot_be_a_socket_is_refused(tmp_path, path, words):
    (tmp_path / "file").write_text("text")
    flags = ["--port=0", f"--grpc_socket_path={path}", f"--model_base_path={tmp_path}"]
    ended = subprocess.run(
        [find_executable(), *flags], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 1
    assert "--grpc_socket_path" in ended.stderr
    assert words in ended.stderr
    assert (tmp_path / "file").read_text() == "text"
