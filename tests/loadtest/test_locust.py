"""Locust with colcast's users: formats mixed or in turn, in one process or several; its tables."""

import csv
import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2

from ..server.browser import browser
from ..server.metrics_page import PATH, Metrics

LOCUSTFILE = Path(__file__).parents[2] / "loadtest" / "locust" / "locustfile.py"
LOCUST = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE)]
HEADLESS = [*LOCUST, "--headless", "--only-summary"]
TURNS = ["--formats", "example,columnar,late", "--turns", "1"]
# With COLUMNS, which readline and test runners set, tables would be cut.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "COLUMNS"}


def locust(*options: str) -> subprocess.CompletedProcess[str]:
    command = [*HEADLESS, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def small(served: ServerProcess) -> list[str]:
    return ["--host", served.target, "--model", "small", "--sizes", "20", "--distinct", "5"]


@pytest.fixture(scope="module")
def measured(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The native server with the model `small` and its metrics page."""
    flags = publishing(tmp_path_factory.mktemp("monitoring"))
    with ServerProcess("small", exported, flags) as server:
        yield server


def metrics(server: ServerProcess) -> list[str]:
    return ["--metrics", f"http://{server.rest_target}{PATH}"]


def ended(folder: Path, *options: str) -> tuple[dict[str, dict[str, str]], str]:
    """Runs Locust to its end; returns the comparison's lines by format, and the printed text."""
    ran = locust("--csv", str(folder / "run"), "--json-file", str(folder / "run"), *options)
    assert ran.returncode == 0, ran.stderr
    with (folder / "run_comparison.csv").open() as file:
        return {line["format"]: line for line in csv.DictReader(file)}, ran.stdout


def counted(folder: Path) -> dict[str, dict[str, Any]]:
    """What Locust itself counted, by name."""
    return {one["name"]: one for one in json.loads((folder / "run.json").read_text())}


def answered(server: ServerProcess, signature: str) -> float:
    """The number of requests that the server answered."""
    labels = {"model_name": "small", "API": "Predict", "entrypoint": "GRPC", "status": "OK"}
    return Metrics(server).value(":colcast:requests_total", signature_name=signature, **labels)


def test_a_run_in_turns_ends_with_the_comparison(measured: ServerProcess, tmp_path: Path):
    options = [*small(measured), *metrics(measured), *TURNS, "-u", "2", "-r", "2", "-t", "8s"]
    rows, printed = ended(tmp_path, *options)
    assert list(rows) == ["example", "columnar", "late"]
    sent = {name: one["num_requests"] for name, one in counted(tmp_path).items()}
    assert {name: int(row["answered"]) for name, row in rows.items()} == sent
    for row in rows.values():
        assert float(row["server_cpu_ms"]) > 0
        assert 0 < float(row["p50_ms"]) <= float(row["p95_ms"])
    first, once = rows["example"], rows["columnar"]
    assert first["server_cpu_ms_share"] == first["p50_ms_share"] == "1"
    share = float(once["request_bytes"]) / float(first["request_bytes"])
    assert float(once["request_bytes_share"]) == pytest.approx(share, rel=1e-3)
    assert re.search(r"CPU ms", printed)
    assert re.search(rf"columnar +{int(once['answered']):,} +0 ", printed)
    assert re.search(r"late: \d+ to \d+ % of the CPU of example in 2 rounds", printed)
    assert "2 complete rounds of turns: run at least 3, 9 s, to see how much CPU varies" in printed


FORMATS_OVER_TIME = """
from types import SimpleNamespace
from unittest import mock
from colcast.loadtest.locust.turns import Sender
sender = Sender(SimpleNamespace(runner=mock.Mock()), "abc", 2)
sender._start(SimpleNamespace(data=100.0))
for now in (100.0, 101.9, 102.0, 104.5, 106.0):
    with mock.patch("time.time", return_value=now):
        print(sender.format_now(), end="")
"""


def test_in_turns_every_user_sends_the_same_format():
    """Runs in a process of its own, because Locust replaces parts of the standard library."""
    command = [sys.executable, "-c", FORMATS_OVER_TIME]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "aabca"


def test_mixed_formats_are_all_answered_and_share_the_servers_cpu(
    measured: ServerProcess, tmp_path: Path
):
    options = [*small(measured), *metrics(measured), "-u", "3", "-r", "3", "-t", "2s"]
    rows, printed = ended(tmp_path, *options)
    assert list(rows) == ["example", "repeated", "columnar"]
    for name, row in rows.items():
        assert int(row["answered"]) > 10
        assert counted(tmp_path)[name]["num_failures"] == 0
        assert row["server_cpu_ms"] == ""
    assert re.search(r"columnar .* 99\d \(\d+ %\)", printed)  # bytes per request
    words = re.search(r"server CPU: ([\d.]+) ms per answered request, all formats; --", printed)
    assert words
    assert float(words[1]) > 0


def test_a_mix_sends_formats_by_weight(measured: ServerProcess, tmp_path: Path):
    options = ["-u", "4", "-r", "4", "-t", "2s", "--mix", "elwc=1,late=3"]
    ended(tmp_path, *small(measured), *options)
    stats = counted(tmp_path)
    assert stats.keys() == {"elwc", "late"}
    assert stats["elwc"]["num_requests"] < stats["late"]["num_requests"]
    assert stats["elwc"]["method"] == "Regress"
    assert all(one["num_failures"] == 0 for one in stats.values())


def test_failures_are_counted_by_their_grpc_code_with_the_servers_message(
    serve: Any, tmp_path: Path
):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
        raise AssertionError

    request = predict_pb2.PredictRequest()
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.array([1, 2])))
    path = tmp_path / "requests.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(request.SerializeToString())
    recorded = ["--traffic", f"requests:{path}", "--mix", "recorded=1", "--model", "any"]
    ran = locust(*recorded, "--host", serve(refuse), "-u", "1", "-t", "2s")
    assert ran.returncode == 1
    assert re.search(r"Predict +recorded +\d+ +\d+\(100\.00%\)", ran.stdout + ran.stderr)
    assert "CallFailed('RESOURCE_EXHAUSTED: the queue is full')" in ran.stdout + ran.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_missing_metrics_are_named(measured: ServerProcess, tmp_path: Path):
    wrong = f"http://{measured.rest_target}/elsewhere"
    options = [*small(measured), "--metrics", wrong, *TURNS, "-u", "2", "-r", "2", "-t", "5s"]
    rows, printed = ended(tmp_path, *options)
    assert {row["server_cpu_ms"] for row in rows.values()} == {""}
    assert f"server CPU is not measured: no metrics at {wrong}: " in printed
    assert "--monitoring_config_file" in printed


def test_workers_take_the_masters_turns(measured: ServerProcess, tmp_path: Path):
    port = str(free_port())
    before = answered(measured, "columnar_late")
    options = [*small(measured), *TURNS]
    workers = [
        subprocess.Popen(
            [*LOCUST, "--worker", "--master-port", port, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    master = ["--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    master += ["--expect-workers", "2", "-u", "4", "-r", "4", "-t", "6s", *metrics(measured)]
    try:
        rows, _ = ended(tmp_path, *master, *options)
        assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert list(rows) == ["example", "columnar", "late"]
    warm_up = 2 * 5  # each of two workers first sends its five requests once
    sent = answered(measured, "columnar_late") - before - warm_up
    # Calls of the 4 users that are under way when the run ends are not counted.
    assert 0 <= sent - int(rows["late"]["answered"]) <= 4
    assert all(float(row["server_cpu_ms"]) > 0 for row in rows.values())


def test_the_page_shows_the_comparison(measured: ServerProcess, tmp_path: Path):
    port = free_port()
    web = ["--web-host", "127.0.0.1", "--web-port", str(port), "--autostart", "-u", "2", "-r", "2"]
    options = [*small(measured), *metrics(measured), *TURNS]
    page = f"http://127.0.0.1:{port}"
    with subprocess.Popen([*LOCUST, *web, *options], stderr=subprocess.DEVNULL) as locust:
        try:
            with browser(tmp_path / "profile") as tab:
                while locust.poll() is None and not reached(page):
                    pass
                tab.open(f"{page}/?tab=comparison")
                assert tab.wait_for(
                    "['example', 'columnar', 'late', 'CPU ms', ' %)']"
                    ".every(text => document.body.innerText.includes(text))"
                )
            with urllib.request.urlopen(f"{page}/comparison.csv") as answer:
                assert answer.read().startswith(b"format,answered,failed,p50_ms")
        finally:
            locust.terminate()


def reached(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--formats", "example,nonsense"], "no format 'nonsense'"),
        (["--turns", "1", "--mix", "example=1"], "--mix sets weights"),
        (["--turns", "-1"], "--turns -1: expected seconds"),
        (["--mix", "nonsense=1"], "--mix 'nonsense=1'"),
        (["--mix", "late=0"], "--mix 'late=0'"),
    ],
)
def test_invalid_options_are_refused(measured: ServerProcess, options: list[str], words: str):
    ran = locust(*small(measured), *options)
    assert ran.returncode != 0
    assert words in ran.stderr
