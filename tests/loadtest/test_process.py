"""CPU time and memory of a server; an interrupt ends a program at any moment."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from colcast.loadtest.measure.budget import interruptible
from colcast.loadtest.measure.meters import (
    MetricsMeter,
    ProcessMeter,
    listening_process,
)


def test_it_counts_all_the_cpu_time_of_the_process():
    meter = ProcessMeter(os.getpid())
    began = time.process_time(), meter.cpu_seconds(), time.process_time()
    sum(range(1_000_000))
    ended = time.process_time(), meter.cpu_seconds(), time.process_time()
    assert ended[0] - began[2] <= ended[1] - began[1] <= ended[2] - began[0]


def test_a_waiting_process_uses_none():
    script = "print('waiting', flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    meter = ProcessMeter(child.pid)
    try:
        memory = meter.memory_bytes()
        assert 0 < memory <= meter.peak_memory_bytes()
    finally:
        child.communicate(b"\n")
    with pytest.raises(ProcessLookupError, match=f"no process {child.pid}"):
        meter.cpu_seconds()
    with pytest.raises(ProcessLookupError):
        meter.memory_bytes()


def test_a_process_that_ended_has_no_memory_before_it_is_waited_for_either():
    with subprocess.Popen(["sleep", "60"]) as child:
        meter = ProcessMeter(child.pid, "127.0.0.1:8500")
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        ended = rf"the server at 127\.0\.0\.1:8500 \(process {child.pid}\) ended during the test"
        with pytest.raises(ProcessLookupError, match=ended):
            meter.memory_bytes()


def test_the_process_behind_a_local_address_is_found(serve: Any):
    address = serve(lambda request, _: b"")
    port = address.rpartition(":")[2]
    assert listening_process(address) == os.getpid()
    assert listening_process(f"localhost:{port}") == os.getpid()
    assert listening_process(f"192.0.2.1:{port}") is None


@pytest.fixture
def metrics_page() -> Iterator[Callable[[str], str]]:
    """A function that serves a text; it returns the URL."""
    servers = []

    def publish(text: str) -> str:
        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/metrics"

    yield publish
    for server in servers:
        server.shutdown()
        server.server_close()


def test_metrics_have_cpu_and_memory(metrics_page: Callable[[str], str]):
    url = metrics_page(
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 12.5\n"
        "process_resident_memory_bytes 1048576\n"
    )
    meter = MetricsMeter(url)
    assert (meter.cpu_seconds(), meter.memory_bytes()) == (12.5, 1 << 20)


def test_metrics_without_the_figures_are_named(metrics_page: Callable[[str], str]):
    with pytest.raises(LookupError, match=r"/metrics does not publish process_cpu_seconds_total"):
        MetricsMeter(metrics_page("requests_total 5\n"))
    with pytest.raises(LookupError, match=r"no metrics at http://127\.0\.0\.1:1/"):
        MetricsMeter("http://127.0.0.1:1/")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_elsewhere_is_raised_at_once(how: signal.Signals):
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), how)
