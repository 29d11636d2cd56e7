"""Envoy in front of real servers: it chooses a server, refuses some requests and loses no call."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from ..models import build
from ..server.tls import EC, openssl
from ..waiting import wait_until
from .envoy import Envoy, arguments_for, render, validate

USER = {"age": 31, "city": "Łódź", "history": [1, 2, 3]}
ITEMS = [
    {"movie": 7, "year": 2001.0, "genres": ["Drama"], "vector": [1.0, 2.0, 3.0]},
    {"movie": 9, "year": 1984.0, "genres": [], "vector": [4.0, 5.0, 6.0]},
]
DRAIN = "--drain_seconds=4"  # twice the time of two health checks, one second each


@pytest.mark.parametrize(
    "arguments",
    [
        ["--server=ranker.default.svc:8500:8501"],
        ["--server=10.0.0.1:8500:8501", "--server=10.0.0.2:8500:8501", "--balance-factor=125"],
        ["--server=ranker:8500:8501", "--caller-rate=100", "--caller-header=x-team"],
        ["--server=[::1]:8500:8501", "--tls-certificate=server.pem", "--tls-key=server.key"],
    ],
    ids=["name", "addresses", "callers", "tls"],
)
def test_envoy_takes_the_configuration(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    openssl("req", "-x509", *EC, "-subj", "/CN=a", "-keyout", "server.key", "-out", "server.pem")
    assert validate(render(*arguments), tmp_path / "envoy.yaml") == ""


def test_envoy_notices_a_mistake(tmp_path: Path) -> None:
    wrong = render("--server=ranker:8500:8501").replace("hash_balance", "hash_balanced")
    assert "hash_balanced_factor" in validate(wrong, tmp_path / "envoy.yaml")


def start(folder: Path, version: int, *flags: str) -> ServerProcess:
    """A server of one model version; the version in its answers identifies the server."""
    flags = ("--rest_api_port=-1", DRAIN, *flags)
    return ServerProcess("movies", folder / str(version), flags=flags).__enter__()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three base paths, each with one version of the model."""
    folder = tmp_path_factory.mktemp("movies")
    for version in (1, 2, 3):
        build("movies", folder / str(version) / str(version))
    return folder


@pytest.fixture(scope="module")
def envoy(models: Path) -> Iterator[Envoy]:
    """Envoy in front of three servers."""
    with ExitStack() as stack:
        servers = [start(models, version) for version in (1, 2, 3)]
        for server in servers:
            stack.callback(server.kill)
        yield stack.enter_context(Envoy(render(*arguments_for(servers)), healthy=3))


def rest_version(envoy: Envoy, user: str) -> int:
    """The version that answers a user's REST request."""
    url = f"http://{envoy.rest_target}/v1/models/movies"
    request = urllib.request.Request(url, headers={"x-colcast-user": user})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return int(json.load(answer)["model_version_status"][0]["version"])


def test_a_user_meets_one_server(envoy: Envoy) -> None:
    users = [{**USER, "age": age} for age in range(30)]
    with RankingClient(envoy.target, "movies", timeout_seconds=120) as client:
        first, again = (
            [client.rank(user, ITEMS).model_version for user in users] for _ in range(2)
        )
    assert first == again
    assert set(first) == {1, 2, 3}


def test_a_user_meets_the_same_server_over_rest(envoy: Envoy) -> None:
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(envoy.target))
    for user in (f"{n:016x}" for n in range(20)):
        answer, _ = stub.Predict.with_call(
            plain_request(), timeout=120, metadata=[("x-colcast-user", user)]
        )
        assert rest_version(envoy, user) == answer.model_spec.version.value


def plain_request() -> predict_pb2.PredictRequest:
    """A request for two candidates, made with protobuf."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "movies"
    request.model_spec.signature_name = "slim"
    request.inputs["year"].CopyFrom(tf.make_tensor_proto([2001.0, 1984.0]))
    request.inputs["vector"].CopyFrom(tf.make_tensor_proto([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    return request


REST_BODY = json.dumps(
    {
        "signature_name": "slim",
        "inputs": {"year": [2001.0, 1984.0], "vector": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
    }
)


def test_requests_that_clients_may_not_make(envoy: Envoy) -> None:
    channel = grpc.insecure_channel(envoy.target)
    with pytest.raises(grpc.RpcError) as refused:
        model_service_pb2_grpc.ModelServiceStub(channel).HandleReloadConfigRequest(
            model_management_pb2.ReloadConfigRequest(), timeout=120
        )
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    health = health_pb2_grpc.HealthStub(channel)
    with pytest.raises(grpc.RpcError) as unknown:
        next(health.Watch(health_pb2.HealthCheckRequest(), timeout=120))
    assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED
    checked = health.Check(health_pb2.HealthCheckRequest(), timeout=120)
    assert checked.status == health_pb2.HealthCheckResponse.SERVING
    for path in ("/", "/monitoring/prometheus/metrics", "/v1x", "//"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{envoy.rest_target}{path}", timeout=120)


def test_connections_beyond_the_limit_are_refused(models: Path) -> None:
    with ExitStack() as stack:
        server = start(models, 1)
        stack.callback(server.kill)
        limited = render(*arguments_for([server]), "--max-connections=2")
        envoy = stack.enter_context(Envoy(limited, healthy=1, concurrency=1))
        open_ones = [http.client.HTTPConnection(envoy.rest_target, timeout=120) for _ in range(2)]
        for connection in open_ones:
            connection.request("GET", "/v1/models/movies")
            assert connection.getresponse().read()
        assert not answers(http.client.HTTPConnection(envoy.rest_target, timeout=120))
        open_ones[0].close()
        wait_until(lambda: answers(http.client.HTTPConnection(envoy.rest_target, timeout=120)))


def test_a_caller_beyond_its_rate_is_refused_and_others_are_answered(models: Path) -> None:
    with ExitStack() as stack:
        server = start(models, 1)
        stack.callback(server.kill)
        limited = render(*arguments_for([server]), "--caller-rate=2")
        envoy = stack.enter_context(Envoy(limited, healthy=1))
        stub = prediction_service_pb2_grpc.PredictionServiceStub(
            stack.enter_context(grpc.insecure_channel(envoy.target))
        )

        def ask(*callers: str) -> list[grpc.StatusCode]:
            futures = [
                stub.Predict.future(
                    plain_request(),
                    timeout=120,
                    metadata=[("x-colcast-caller", caller)] * bool(caller),
                )
                for caller in callers
            ]
            return [future.code() for future in futures]

        flood = ask(*["batch"] * 200)
        assert set(flood) == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert set(ask("feed", "search", *[""] * 50)) == {grpc.StatusCode.OK}
        url = f"http://{envoy.rest_target}/v1/models/movies"
        request = urllib.request.Request(url, headers={"x-colcast-caller": "batch over REST"})
        codes = set()
        while 429 not in codes:
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    codes.add(answer.status)
            except urllib.error.HTTPError as error:
                codes.add(error.code)
        assert codes == {200, 429}


def answers(connection: http.client.HTTPConnection) -> bool:
    """Sends one request on a connection, then closes it; returns whether it was answered."""
    try:
        connection.request("GET", "/v1/models/movies")
        return connection.getresponse().status == 200
    except ConnectionError:  # includes RemoteDisconnected
        return False
    finally:
        connection.close()


class Load:
    """Clients that never retry, to count every failure that Envoy does not hide."""

    def __init__(self, envoy: Envoy) -> None:
        self._envoy = envoy
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.answered = 0
        self.failed: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._run, args=(ask(),))
            for ask in (self._grpc, self._grpc, self._rest, self._rest)
        ]
        for thread in self._threads:
            thread.start()

    def answers(self, more: int) -> None:
        """Waits until `more` requests are answered, or one fails."""
        enough = self.answered + more
        wait_until(lambda: self.answered >= enough or bool(self.failed))

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, ask: Callable[[str], None]) -> None:
        user = 0
        while not self._stop.is_set():
            user = (user * 7919 + 17) % 1009
            try:
                ask(f"{user:016x}")
            except Exception as error:
                with self._lock:
                    self.failed[f"{type(error).__name__} {error}"] += 1
            else:
                with self._lock:
                    self.answered += 1

    def _grpc(self) -> Callable[[str], None]:
        options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.insecure_channel(self._envoy.target, options)
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        request = plain_request()

        def ask(user: str) -> None:
            stub.Predict(request, timeout=60, metadata=[("x-colcast-user", user)])

        return ask

    def _rest(self) -> Callable[[str], None]:
        connection = http.client.HTTPConnection(self._envoy.rest_target, timeout=120)

        def ask(user: str) -> None:
            path = "/v1/models/movies:predict"
            connection.request("POST", path, REST_BODY, {"x-colcast-user": user})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body

        return ask


def test_a_server_that_dies_and_one_that_drains_fail_no_request(models: Path) -> None:
    servers = {version: start(models, version) for version in (1, 2, 3)}
    with ExitStack() as stack:
        stack.callback(lambda: [server.kill() for server in servers.values()])
        envoy = stack.enter_context(Envoy(render(*arguments_for([*servers.values()])), healthy=3))
        load = Load(envoy)
        stack.callback(load.stop)
        load.answers(300)
        servers[1].kill()
        wait_until(lambda: envoy.members("grpc") == 2)
        load.answers(300)
        ports = (servers[1].target, servers[1].rest_target)
        again = [int(port.rpartition(":")[2]) for port in ports]
        flags = (f"--port={again[0]}", f"--rest_api_port={again[1]}")
        servers[1] = start(models, 1, *flags)
        wait_until(lambda: envoy.members("grpc") == envoy.members("rest") == 3)
        load.answers(300)
        drained = stack.enter_context(ThreadPoolExecutor()).submit(servers[2].stop)
        wait_until(lambda: envoy.members("grpc") == 2)
        assert drained.result() == 0
        load.answers(300)
        load.stop()
        retried = envoy.stat("cluster.grpc.upstream_rq_retry_success")
    assert load.failed == Counter()
    assert load.answered >= 1200
    assert retried > 0
