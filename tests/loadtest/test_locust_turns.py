"""Locust's formats in turn, and a run's final comparison: console, CSV, web page."""

import csv
import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from ..server.browser import browser
from ..server.metrics_page import PATH, Metrics
from .test_locust import HEADLESS, LOCUST, free_port, small

TURNS = ["--formats", "example,columnar,late", "--turns", "1"]


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
    command = [*HEADLESS, "--csv", str(folder / "run"), "--json-file", str(folder / "run")]
    # With COLUMNS, which readline and test runners set, the table would be cut.
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    ran = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=120, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return compared(folder), ran.stdout


def compared(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "run_comparison.csv").open() as file:
        return {line["format"]: line for line in csv.DictReader(file)}


def counted(folder: Path) -> dict[str, int]:
    """The number of requests per name that Locust itself counted."""
    stats = json.loads((folder / "run.json").read_text())
    return {one["name"]: one["num_requests"] for one in stats}


def answered(server: ServerProcess, signature: str) -> float:
    """The number of requests that the server answered."""
    labels = {"model_name": "small", "API": "Predict", "entrypoint": "GRPC", "status": "OK"}
    return Metrics(server).value(":colcast:requests_total", signature_name=signature, **labels)


def test_a_run_in_turns_ends_with_the_comparison(measured: ServerProcess, tmp_path: Path):
    options = [*small(measured), *metrics(measured), *TURNS, "-u", "2", "-r", "2", "-t", "8s"]
    rows, printed = ended(tmp_path, *options)
    assert list(rows) == ["example", "columnar", "late"]
    assert {name: int(row["answered"]) for name, row in rows.items()} == counted(tmp_path)
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


class Watching(grpc.GenericRpcHandler):
    """A proxy that counts the calls that began while another format was in flight."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        self._under_way: list[str] = []
        self.calls = self.together = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if "Prediction" not in handler_call_details.method:
            return None
        call = self._channel.unary_unary(handler_call_details.method)
        predict = handler_call_details.method.endswith("/Predict")

        def forward(request: bytes, context: grpc.ServicerContext) -> bytes:
            if not predict:
                return bytes(call(request))
            kind = "late" if b"columnar_late" in request else "other"
            self._under_way.append("example" if b"columnar" not in request else kind)
            self.calls += 1
            self.together += len(set(self._under_way)) > 1
            answer = bytes(call(request))
            self._under_way.remove("example" if b"columnar" not in request else kind)
            return answer

        return grpc.unary_unary_rpc_method_handler(forward)


@pytest.mark.parametrize("in_turns", [True, False])
def test_in_turns_two_formats_are_under_way_together_only_at_borders(
    served: ServerProcess, tmp_path: Path, in_turns: bool
):
    watching = Watching(served.target)
    server = grpc.server(ThreadPoolExecutor(8), handlers=[watching])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    options = ["--host", address, "--model", "small", "--sizes", "20", "--distinct", "3"]
    options += TURNS if in_turns else TURNS[:2]
    try:
        rows, _ = ended(tmp_path, *options, "-u", "6", "-r", "6", "-t", "5s")
    finally:
        server.stop(grace=None).wait()
    assert len(rows) == 3
    assert (watching.together < 0.1 * watching.calls) == in_turns


def test_mixed_formats_share_the_servers_cpu(measured: ServerProcess, tmp_path: Path):
    options = [*small(measured), *metrics(measured), "--formats", "example,late"]
    rows, printed = ended(tmp_path, *options, "-u", "2", "-r", "2", "-t", "2s")
    assert list(rows) == ["example", "late"]
    assert {row["server_cpu_ms"] for row in rows.values()} == {""}
    words = re.search(
        r"server CPU: ([\d.]+) ms per answered request, all formats; --turns", printed
    )
    assert words
    assert float(words[1]) > 0


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
        (["--turns", "0.5"], "invalid int value: '0.5'"),
    ],
)
def test_invalid_options_are_refused(served: ServerProcess, options: list[str], words: str):
    command = [*HEADLESS, *small(served), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode != 0
    assert words in ran.stderr
