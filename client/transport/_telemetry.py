"""An OpenTelemetry span around each call, in processes that use OpenTelemetry.

OpenTelemetry is used only if the process has imported it; otherwise a call costs one look-up in
`sys.modules`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colcast.client._errors import ServerError
from colcast.client.transport._transport import Call, Metadata, Reply


class CallSpan:
    """Records one call in a span; does nothing if `span` is None."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def sends(self, call: Call, metadata: Metadata) -> Metadata:
        """Records a request; returns its metadata with the trace context added."""
        if self._span is None:
            return metadata
        for name, value in call.facts.items():
            self._span.set_attribute(f"colcast.{name}", value)
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return (*metadata, *carrier.items())

    def answered(self, reply: Reply) -> None:
        """Records how often the request was sent, and the size of the answer."""
        if self._span is not None:
            self._span.set_attribute("colcast.attempts", reply.attempts)
            self._span.set_attribute("colcast.response_bytes", len(reply.response))

    def refused(self, error: ServerError) -> None:
        """Records the status of a call that failed."""
        if self._span is not None:
            self._span.set_attribute("rpc.grpc.status_code", error.code)
            self._span.set_attribute("colcast.attempts", error.attempts)


@contextmanager
def call_span(name: str, model: str, address: str) -> Iterator[CallSpan]:
    """The span of one client call; records an exception raised inside it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield CallSpan()
        return
    attributes = {"rpc.system": "grpc", "server.address": address, "colcast.model": model}
    tracer = trace.get_tracer("colcast.client")
    with tracer.start_as_current_span(
        f"colcast.{name}", kind=trace.SpanKind.CLIENT, attributes=attributes
    ) as span:
        yield CallSpan(span)
