#!/usr/bin/env python3
"""Receives a server's spans and draws those of one request as SVG.

scripts/trace_picture.py trace.svg [PORT]; run the server with
--trace_endpoint=http://127.0.0.1:PORT/v1/traces --trace_sampling_ratio=1.
"""

import http.server
import sys
from html import escape
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WIDTH, LEFT, ROW = 940, 250, 30


def receive(port: int) -> Any:
    """Waits for a batch of spans, and returns those of its last request."""
    received: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = ExportTraceServiceRequest.FromString(body)
            received.extend(request.resource_spans[0].scope_spans[0].spans)
            self.send_response(200)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", port), Handler) as server:
        while not received:
            server.handle_request()
    return [span for span in received if span.trace_id == received[-1].trace_id]


def draw(spans: Any) -> str:
    """Draws one bar for each span, positioned by time."""
    spans = sorted(spans, key=lambda span: (span.start_time_unix_nano, -span.end_time_unix_nano))
    ids = {span.span_id: span for span in spans}
    start = spans[0].start_time_unix_nano
    scale = (WIDTH - LEFT - 90) / max(1, spans[0].end_time_unix_nano - start)
    height = ROW * len(spans) + 16
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{height}"'
        ' fill="#fff"/>'
    ]
    for row, span in enumerate(spans):
        depth, above = 0, span
        while above.parent_span_id in ids:
            depth, above = depth + 1, ids[above.parent_span_id]
        y = 8 + ROW * row
        x = LEFT + (span.start_time_unix_nano - start) * scale
        micros = (span.end_time_unix_nano - span.start_time_unix_nano) / 1000
        color = ("#3949ab", "#7986cb", "#26a69a")[min(depth, 2)]
        facts = {pair.key: pair.value.int_value for pair in span.attributes}
        hits = ""
        if "colcast.hits" in facts:
            hits = f" {facts['colcast.hits']} hits, {facts['colcast.misses']} misses"
        name = span.name.rsplit("/", 1)[-1] + hits
        width = max(1.5, micros * 1000 * scale)
        svg.append(f'<text x="{12 + 16 * depth}" y="{y + 16}">{escape(name)}</text>')
        svg.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="22" rx="2" fill="{color}"/>'
            f'<text x="{x + width + 6:.1f}" y="{y + 16}" fill="#555">{micros:,.0f} µs</text>'
        )
    return "\n".join([*svg, "</svg>\n"])


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 4318
    Path(sys.argv[1]).write_text(draw(receive(port)))
