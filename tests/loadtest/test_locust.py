"""Locust with colcast's users: in one process, distributed; counts, blind spot."""

import json
import math
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.locust.tally import Calls, Tally
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
    for name in ("tf.Example", "user repeated", "user once"):
        assert stats[name]["num_requests"] > 10
        assert stats[name]["num_failures"] == 0
    assert "user late" not in stats
    assert re.search(r"user once .* 99\d +\d+ % ", stats["text"]["out"])  # bytes per request


def test_a_mix_sends_formats_by_weight(served: ServerProcess, tmp_path: Path):
    options = ["-u", "4", "-r", "4", "-t", "2s", "--mix", "elwc=1,late=3"]
    stats = run(tmp_path, *small(served), *options)
    assert stats.keys() == {"ExampleListWithContext", "user late", "text"}
    late, elwc = (stats[name]["num_requests"] for name in ("user late", "ExampleListWithContext"))
    assert 0.6 < late / (late + elwc) < 0.95
    assert stats["ExampleListWithContext"]["method"] == "Regress"
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
    assert re.search(r"Predict +as recorded +\d+ +\d+\(100\.00%\)", ran.stdout + ran.stderr)
    assert "CallFailed('RESOURCE_EXHAUSTED: the queue is full')" in ran.stdout + ran.stderr


def test_users_that_wait_do_not_see_an_overload(serve: Any, tmp_path: Path):
    """However slow the server is, two waiting users have only two calls in flight, so no queue
    grows.

    With a schedule, calls would pile up; see test_open_loop.
    """
    under_way: list[bytes] = []
    most = []

    def work(request: bytes, context: grpc.ServicerContext) -> bytes:
        under_way.append(request)
        most.append(len(under_way))
        time.sleep(0.1)
        under_way.pop()
        return b""

    options = ["--host", serve(work, workers=8), "-u", "2", "-r", "2", "-t", "2s"]
    stats = run(tmp_path, *recorded(tmp_path), *options)
    assert stats["as recorded"]["num_failures"] == 0
    assert 0 < max(most) <= 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_workers_send_and_the_master_adds_up(served: ServerProcess, tmp_path: Path):
    port = str(free_port())
    workers = [
        subprocess.Popen(
            [*LOCUST, "--worker", "--master-port", port, *small(served)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    options = ["--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    options += ["--expect-workers", "2", "-u", "3", "-r", "3", "-t", "3s"]
    command = [*HEADLESS, "--csv", str(tmp_path / "run"), *options, *small(served)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=40)
        assert ran.returncode == 0, ran.stderr
        assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert "user once" in (tmp_path / "run_stats.csv").read_text()
    assert re.search(r"user once +[\d,]+ +0 .* 99\d +\d+ % ", ran.stdout)


def test_percentiles_are_exact_to_half_a_percent():
    calls = Calls()
    latencies = np.random.default_rng(0).gamma(2, 3.0, 5000)
    for latency in latencies:
        calls.add(float(latency), 100, ok=True)
    for percentile in (1, 50, 95, 99):
        wanted = float(np.percentile(latencies, percentile, method="inverted_cdf"))
        assert calls.percentile_ms(percentile) == pytest.approx(wanted, rel=0.006)


def test_failed_calls_have_bytes_and_no_latency():
    calls = Calls()
    calls.add(0.1, 100, ok=False)
    calls.add(8.0, 300, ok=True)
    assert (calls.answered, calls.failed, calls.bytes_per_request) == (1, 1, 200)
    assert calls.percentile_ms(1) == pytest.approx(8, rel=0.006)


def test_nothing_has_no_figures():
    assert math.isnan(Calls().percentile_ms(50))
    assert math.isnan(Calls().bytes_per_request)


def test_merged_counts_are_added_once():
    worker, master = Tally(), Tally()
    for latency in (1.0, 2.0, 4.0):
        worker.of("late").add(latency, 10, ok=True)
        master.merge(worker.take())
        master.merge(worker.take())
    assert master.answered == 3
    assert master.of("late").request_bytes == 30
    assert master.of("late").percentile_ms(50) == pytest.approx(2, rel=0.006)


def test_it_travels_in_plain_values():
    tally = Tally()
    tally.of("example").add(3.0, 10, ok=True)
    assert json.loads(json.dumps(tally.take()))["example"]["answered"] == 1
