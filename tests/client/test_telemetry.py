"""Spans, in a process that has OpenTelemetry."""

from typing import Any

import pytest
from colcast.client import ModelSchema, RankingClient, ServerError

from .conftest import ITEMS, USER
from .test_transport import metadata, scores, unavailable_until

sdk = pytest.importorskip("opentelemetry.sdk.trace")


@pytest.fixture(scope="module")
def exporter() -> Any:
    """Keeps the spans in memory."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


def test_a_span_says_what_was_asked_and_travels_with_it(
    scripted: Any, schema: ModelSchema, exporter: Any
) -> None:
    exporter.clear()
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    with RankingClient(server.address, "movies") as client:
        client.rank(USER, [{**item, "poster_url": "x"} for item in ITEMS])
    (span,) = exporter.get_finished_spans()
    assert span.name == "colcast.rank"
    expected = {
        "rpc.system": "grpc",
        "server.address": server.address,
        "colcast.model": "movies",
        "colcast.target": "late",
        "colcast.candidates": 3,
        "colcast.columns_not_sent": 1,
        "colcast.attempts": 1,
    }
    assert expected.items() <= dict(span.attributes).items()
    traceparent = server.requests[-1][2]["traceparent"]
    assert f"{span.context.trace_id:032x}-{span.context.span_id:016x}" in traceparent


def test_a_failure_is_recorded(scripted: Any, schema: ModelSchema, exporter: Any) -> None:
    exporter.clear()
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=unavailable_until(10**6, None)
    )
    with RankingClient(server.address, "movies") as client, pytest.raises(ServerError):
        client.rank(USER, ITEMS, timeout_seconds=0.1)
    (span,) = exporter.get_finished_spans()
    assert span.attributes["rpc.grpc.status_code"] == "UNAVAILABLE"
    assert not span.status.is_ok
