"""Locust with colcast's users: in one process, distributed; counts, blind spot."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

PACKAGE = Path(__file__).parents[2] / "loadtest" / "locust"
LOCUSTFILE = PACKAGE / "locustfile.py"
LOCUST = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE)]
HEADLESS = [*LOCUST, "--headless", "--only-summary"]


def run(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Runs Locust to its end; returns its counts by name, and its output under "text"."""
    command = [*HEADLESS, "--json-file", str(folder / "run"), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    stats = json.loads((folder / "run.json").read_text())
    return {one["name"]: one for one in stats} | {"text": {"out": ran.stdout + ran.stderr}}


def small(served: ServerProcess) -> list[str]:
    return ["--host", served.target, "--model", "small", "--sizes", "20", "--distinct", "5"]


def test_every_format_is_sent_and_answered(served: ServerProcess, tmp_path: Path):
    stats = run(tmp_path, *small(served), "-u", "3", "-r", "3", "-t", "2s")
    for name in ("example", "repeated", "columnar"):
        assert stats[name]["num_requests"] > 10
        assert stats[name]["num_failures"] == 0
    assert "late" not in stats
    assert re.search(r"columnar .* 99\d \(\d+ %\)", stats["text"]["out"])  # bytes per request


def test_a_mix_sends_formats_by_weight(served: ServerProcess, tmp_path: Path):
    options = ["-u", "4", "-r", "4", "-t", "2s", "--mix", "elwc=1,late=3"]
    stats = run(tmp_path, *small(served), *options)
    assert stats.keys() == {"elwc", "late", "text"}
    late, elwc = (stats[name]["num_requests"] for name in ("late", "elwc"))
    assert 0.6 < late / (late + elwc) < 0.95
    assert stats["elwc"]["method"] == "Regress"
    assert all(stats[name]["num_failures"] == 0 for name in stats.keys() - {"text"})


@pytest.mark.parametrize("wrong", ["nonsense=1", "late", "late=0"])
def test_an_invalid_mix_is_refused(served: ServerProcess, wrong: str):
    ran = subprocess.run(
        [*HEADLESS, *small(served), "--mix", wrong], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode != 0
    assert f"--mix '{wrong}'" in ran.stderr


def recorded(folder: Path) -> list[str]:
    """Records a request; returns the options to replay it against any server."""
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.array([1, 2])))
    path = folder / "requests.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(request.SerializeToString())
    return ["--traffic", f"requests:{path}", "--mix", "recorded=1", "--model", "any"]


def test_failures_are_counted_by_their_grpc_code_with_the_servers_message(
    serve: Any, tmp_path: Path
):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
        raise AssertionError

    command = [*HEADLESS, *recorded(tmp_path), "--host", serve(refuse), "-u", "1", "-t", "2s"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert re.search(r"Predict +recorded +\d+ +\d+\(100\.00%\)", ran.stdout + ran.stderr)
    assert "CallFailed('RESOURCE_EXHAUSTED: the queue is full')" in ran.stdout + ran.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
