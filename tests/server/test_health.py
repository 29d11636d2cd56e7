"""grpc.health.v1.Health: asked once, and watched."""

import contextlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from colcast.server import ServerProcess, find_executable
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

Status = health_pb2.HealthCheckResponse
SERVICES = (
    "",
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
    "inference.GRPCInferenceService",
)
UNKNOWN = "tensorflow.serving.NoSuchService"


@pytest.fixture(name="health")
def health_of(server):
    with grpc.insecure_channel(server.target) as channel:
        yield health_pb2_grpc.HealthStub(channel)


def asked(service: str = "") -> Message:
    return health_pb2.HealthCheckRequest(service=service)


def states_of(watch) -> list[int]:
    """The states that are told until the watch ends.

    The client forgets one that it has not asked for when the end comes.
    """
    states = []
    with contextlib.suppress(grpc.RpcError):
        for response in watch:
            states.append(response.status)
    return states


@pytest.mark.parametrize("service", SERVICES)
def test_a_check_is_answered_for_the_server_and_by_service(health, service):
    assert health.Check(asked(service), timeout=120).status == Status.SERVING


def test_a_check_of_an_unknown_service_is_not_found(health):
    with pytest.raises(grpc.RpcError) as raised:
        health.Check(asked(UNKNOWN), timeout=120)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_all_services_are_listed(health):
    statuses = health.List(health_pb2.HealthListRequest(), timeout=120).statuses
    assert {name: each.status for name, each in statuses.items()} == dict.fromkeys(
        SERVICES, Status.SERVING
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_watch_tells_the_state_at_once(health, service):
    watch = health.Watch(asked(service), timeout=120)
    assert next(watch).status == Status.SERVING
    watch.cancel()


def test_a_watch_of_an_unknown_service_says_so_and_stays(health):
    watch = health.Watch(asked(UNKNOWN), timeout=120)
    assert next(watch).status == Status.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


def test_watches_come_and_go(health):
    for _ in range(3):
        watches = [health.Watch(asked(), timeout=60) for _ in range(20)]
        assert {next(watch).status for watch in watches} == {Status.SERVING}
        for watch in watches:
            watch.cancel()
    assert health.Check(asked(), timeout=120).status == Status.SERVING


@pytest.mark.parametrize("method", ["Check", "Watch"])
@pytest.mark.parametrize("message", [b"\xff" * 10, b"\x0a\x05abc", b"\x0a\x02\xff\xfe"])
def test_bytes_that_are_no_message_are_refused(server, health, method, message):
    with grpc.insecure_channel(server.target) as channel:
        call = channel.unary_stream(f"/grpc.health.v1.Health/{method}")(message, timeout=120)
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "malformed HealthCheckRequest" in raised.value.details()
    assert health.Check(asked(), timeout=120).status == Status.SERVING


def test_a_watch_without_a_message_is_refused(server, health):
    with grpc.insecure_channel(server.target) as channel:
        call = channel.stream_stream("/grpc.health.v1.Health/Watch")(iter([]), timeout=120)
        assert call.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert health.Check(asked(), timeout=120).status == Status.SERVING


def test_watches_are_told_that_the_server_stops_and_do_not_keep_it(ranker_base_path):
    services = [*SERVICES, UNKNOWN]
    with (
        ServerProcess("ranker", ranker_base_path, ["--drain_seconds=1"]) as server,
        grpc.insecure_channel(server.target) as channel,
        ThreadPoolExecutor(len(services)) as readers,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        watches = [health.Watch(asked(service), timeout=60) for service in services]
        first = [next(watch).status for watch in watches]
        assert first == [Status.SERVING] * len(SERVICES) + [Status.SERVICE_UNKNOWN]
        told = [readers.submit(states_of, watch) for watch in watches]
        assert server.stop() == 0
        states = [each.result(60) for each in told]
        assert states == [[Status.NOT_SERVING]] * len(SERVICES) + [[]]
        assert {watch.code() for watch in watches} == {grpc.StatusCode.CANCELLED}


def test_a_watch_tells_when_the_server_has_loaded_its_model(tmp_path, monkeypatch, ranker_versions):
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    command = [find_executable(), "--port=0", "--grpc_socket_path=s", "--model_name=ranker"]
    command.append(f"--model_base_path={tmp_path}")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "waiting" in process.stderr.readline()
            with grpc.insecure_channel("unix:s") as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(asked(), timeout=60)
                assert next(watch).status == Status.NOT_SERVING
                ranker_versions(tmp_path / "1")
                assert next(watch).status == Status.SERVING
        finally:
            process.terminate()
            process.communicate(timeout=120)
    assert process.returncode == 0
