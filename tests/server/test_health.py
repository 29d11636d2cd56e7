"""grpc.health.v1.Health: checks, watches, and the conditions of readiness."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.server import find_executable
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .test_model_config import config, reload

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
def test_a_watch_reports_the_state_immediately(health, service):
    watch = health.Watch(asked(service), timeout=120)
    assert next(watch).status == Status.SERVING
    watch.cancel()


def test_a_watch_of_an_unknown_service_says_so_and_stays_open(health):
    watch = health.Watch(asked(UNKNOWN), timeout=120)
    assert next(watch).status == Status.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


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


def test_a_watch_reports_when_the_server_has_loaded_its_model(
    tmp_path, monkeypatch, ranker_versions
):
    monkeypatch.chdir(tmp_path)  # Unix socket paths must be short
    command = [find_executable(), "--port=0", "--grpc_socket_path=s", "--model_name=ranker"]
    command.append(f"--model_base_path={tmp_path}")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert f"no version under {tmp_path} yet" in process.stderr.readline()
            with grpc.insecure_channel("unix:s") as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(asked(), timeout=60)
                assert next(watch).status == Status.NOT_SERVING
                ranker_versions(tmp_path / "1")
                assert next(watch).status == Status.SERVING
        finally:
            process.terminate()
            process.communicate(timeout=120)
    assert process.returncode == 0


@contextlib.contextmanager
def starting(file: Path, *flags: str) -> Iterator[tuple[str, Path]]:
    """Starts a server that may never become ready; yields its address and its log file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = file.with_suffix(".log")
    command = [find_executable(), "--host=127.0.0.1", f"--port={port}"]
    command += [f"--model_config_file={file}", "--file_system_poll_wait_seconds=0.1", *flags]
    with log.open("w") as written, subprocess.Popen(command, stderr=written) as process:
        try:
            yield f"127.0.0.1:{port}", log
        finally:
            process.terminate()


def state_of(target: str) -> int:
    with grpc.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=120)
        except grpc.RpcError:
            return int(Status.UNKNOWN)  # the server does not listen yet
    return int(answer.status)


@pytest.fixture
def rankers(tmp_path: Path, ranker_versions: Any) -> Path:
    """A base path that has version 1."""
    base = tmp_path / "rankers"
    base.mkdir()
    ranker_versions(base / "1", weight=1.0)
    return base


def test_a_label_is_waited_for_until_its_version_serves(
    tmp_path, rankers, ranker_versions, connect, ranker_inputs, wait_until
):
    """Also tests a label of a model that is added to the configuration later."""
    file = tmp_path / "models.config"
    labels = {"stable": 1, "canary": 2}
    file.write_text(str(config(ranker=(rankers, [1, 2], labels))))
    flags = ["--allow_version_labels_for_unavailable_models"]
    flags += ["--ready_labels=ranker:stable,ranker:canary,ranker:new"]
    with starting(file, *flags) as (target, log):
        wait_until(lambda: "the configuration has no such label" in log.read_text())
        assert 'label "canary" (--ready_labels): version 2 does not serve' in log.read_text()
        assert '"stable"' not in log.read_text()
        connect(target).predict(ranker_inputs, label="stable")
        reload(connect(target), config(ranker=(rankers, [1, 2], labels | {"new": 1})))
        assert state_of(target) == Status.NOT_SERVING
        ranker_versions(rankers / "2", weight=2.0)
        wait_until(lambda: state_of(target) == Status.SERVING)
        connect(target).predict(ranker_inputs, label="canary")
