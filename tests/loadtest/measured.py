"""Two formats as `side_by_side` measures them: late takes a quarter of tf.Example's CPU."""

from dataclasses import replace

from colcast.loadtest.figures import Figures
from colcast.loadtest.side_by_side import Line

SLOW = Figures(200, 0, 100.0, 8.0, 2_378_276.0, 4000.0, 7.0, 12.0, 20.0, 0.0)
FAST = replace(SLOW, server_cpu_ms=2.0, request_bytes=215_070.0, p95_ms=3.0)
LINES = [Line(500, "example", SLOW, SLOW, 0.0), Line(500, "late", FAST, FAST, 6e-7)]
