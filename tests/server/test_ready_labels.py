"""Readiness that waits for labels: --ready_labels."""

import contextlib
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.server import find_executable
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .test_model_config import config, reload

Status = health_pb2.HealthCheckResponse


@contextlib.contextmanager
def starting(file: Path, *flags: str) -> Iterator[tuple[str, Path]]:
    """A server that need not become ready: its address, and the file it logs to."""
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


def health_of(target: str) -> Callable[[], int]:
    def health() -> int:
        with grpc.insecure_channel(target) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=120)
            except grpc.RpcError:
                return int(Status.UNKNOWN)  # it does not listen yet
        return int(answer.status)

    return health


@pytest.fixture
def rankers(tmp_path: Path, ranker_versions: Any) -> Path:
    """A base path with version 1."""
    base = tmp_path / "rankers"
    base.mkdir()
    ranker_versions(base / "1", weight=1.0)
    return base


def test_a_label_is_waited_for_until_its_version_serves(
    tmp_path, rankers, ranker_versions, connect, ranker_inputs, wait_until
):
    file = tmp_path / "models.config"
    file.write_text(str(config(ranker=(rankers, [1, 2], {"stable": 1, "canary": 2}))))
    flags = ["--allow_version_labels_for_unavailable_models"]
    flags += ["--ready_labels=ranker:stable,ranker:canary"]
    with starting(file, *flags) as (target, log):
        wait_until(lambda: "not ready without" in log.read_text())
        assert 'label "canary" (--ready_labels): version 2 does not serve' in log.read_text()
        assert '"stable"' not in log.read_text()
        assert health_of(target)() == Status.NOT_SERVING
        connect(target).predict(ranker_inputs, label="stable")
        ranker_versions(rankers / "2", weight=2.0)
        wait_until(lambda: health_of(target)() == Status.SERVING)
        connect(target).predict(ranker_inputs, label="canary")


def test_a_label_may_come_with_a_later_configuration(tmp_path, rankers, connect, wait_until):
    file = tmp_path / "models.config"
    file.write_text(str(config(ranker=(rankers, [1], {}))))
    with starting(file, "--ready_labels=ranker:stable") as (target, log):
        wait_until(lambda: "the configuration has no such label" in log.read_text())
        assert health_of(target)() == Status.NOT_SERVING
        reload(connect(target), config(ranker=(rankers, [1], {"stable": 1})))
        wait_until(lambda: health_of(target)() == Status.SERVING)
