"""Spans that a collector receives."""

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from colcast.server import ServerProcess
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service

from ..models import stages_model

PARENT = "b7ad6b7169203331"
RPC = "tensorflow.serving.PredictionService/Predict"


class Collector:
    """A collector that receives OTLP over HTTP and keeps the spans."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/x-protobuf"
                assert self.path == "/v1/traces"
                collector.requests.append(trace_service.ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def spans(self, trace: str = "") -> list[Any]:
        """The spans received so far, or those of one trace."""
        return [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if trace in ("", span.trace_id.hex())
        ]

    def services(self) -> set[str]:
        """The services that sent the spans."""
        return {
            attributes(resource.resource)["service.name"]
            for request in self.requests
            for resource in request.resource_spans
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def attributes(of: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of.attributes}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture(scope="module")
def traced(
    collector: Collector, tmp_path_factory: pytest.TempPathFactory, monitoring: list[str]
) -> Iterator[ServerProcess]:
    """A server of the model with stages; it traces requests that clients have sampled.

    OpenTelemetry's environment variables name the collector.
    """
    base_path = tmp_path_factory.mktemp("traced")
    stages_model.save(base_path / "7")
    with pytest.MonkeyPatch.context() as environment:
        endpoint = collector.url.removesuffix("/v1/traces")
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        environment.setenv("OTEL_SERVICE_NAME", "named")
        with ServerProcess("ranker", base_path, monitoring) as server:
            yield server


def predict(stubs: Any, traceparent: str, seed: int = 1, candidates: int = 8) -> None:
    """Sends one request that has a traceparent."""
    inputs = stages_model.inputs(np.random.default_rng(seed), 1, candidates)
    request = stubs.request(inputs, signature_name="columnar_late")
    stubs.prediction.Predict(request, timeout=60, metadata=[("traceparent", traceparent)])


def test_the_spans_of_a_request(
    traced: ServerProcess, collector: Collector, connect: Any, wait_until: Callable[..., None]
) -> None:
    """Checks names, parents and attributes, and that each span lies within its parent."""
    stubs = connect(traced.target)
    traces = [f"{number:032x}" for number in range(1, 5)]
    for trace in traces:  # repeats the user and the items
        predict(stubs, f"00-{trace}-{PARENT}-01")
    wait_until(lambda: all(collector.spans(trace) for trace in traces))
    assert collector.services() == {"named"}
    for trace in traces:
        check_request(collector.spans(trace))
    first, last = (
        {span.name: attributes(span) for span in collector.spans(trace)}
        for trace in (traces[0], traces[-1])
    )
    assert last["stage user"] == {"colcast.rows": 1, "colcast.hits": 1, "colcast.misses": 0}
    assert last["stage item"] == {"colcast.rows": 8, "colcast.hits": 8, "colcast.misses": 0}
    assert last["stage candidate"] == {"colcast.rows": 8}
    assert first.get("stage user", {"colcast.hits": 0})["colcast.hits"] == 0


def check_request(spans: list[Any]) -> None:
    """Checks the spans of a request that succeeded."""
    by_name = {span.name: span for span in spans}
    assert len(by_name) == len(spans)
    request, run = by_name[RPC], by_name["run"]
    assert request.parent_span_id.hex() == PARENT
    assert request.kind == 2  # SPAN_KIND_SERVER
    expected = {
        "rpc.system": "grpc",
        "rpc.method": "Predict",
        "rpc.grpc.status_code": 0,
        "colcast.model": "ranker",
        "colcast.version": 7,
        "colcast.signature": "columnar_late",
        "colcast.rows": 8,
        "colcast.status": "OK",
    }
    assert expected.items() <= attributes(request).items()
    assert attributes(run)["colcast.requests_in_run"] == 1
    assert {"queued", "planned", "run", "sent"} <= set(by_name)
    ids = {span.span_id: span for span in spans}
    assert len(ids) == len(spans)
    for span in spans:
        if span is request:
            continue
        parent = ids[span.parent_span_id]
        assert parent is (run if span.name.startswith("stage ") else request)
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= parent.end_time_unix_nano


def test_rest_and_errors(
    traced: ServerProcess, collector: Collector, wait_until: Callable[..., None]
) -> None:
    """The HTTP header works like gRPC's metadata; a failed request has a span with the error."""
    trace, url = "e" * 32, f"http://{traced.rest_target}/v1/models/ranker:predict"
    body = json.dumps({"signature_name": "missing", "inputs": {"x": [1]}}).encode()
    headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60)
    wait_until(lambda: collector.spans(trace))
    by_name = {span.name: span for span in collector.spans(trace)}
    assert set(by_name) == {"POST Predict", "queued"}
    assert by_name["POST Predict"].parent_span_id.hex() == PARENT
    assert by_name["POST Predict"].status.code == 2  # STATUS_CODE_ERROR
    assert attributes(by_name["POST Predict"])["colcast.model"] == "ranker"
