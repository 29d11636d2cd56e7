"""What a terminal and a document show of the figures."""

from dataclasses import replace
from io import StringIO

from colcast.loadtest.measure.figures import Figures, milliseconds, share
from colcast.loadtest.report.tables import figures_table
from rich.console import Console

SLOW = Figures(200, 0, 100.0, 8.0, 2_378_276.0, 4000.0, 7.0, 12.0, 20.0, 0.0)
FAST = replace(SLOW, server_cpu_ms=2.0, request_bytes=215_070.0, p95_ms=3.0)
NAN = float("nan")


def printed(table: object) -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def test_the_figures_of_a_run_fit_too():
    text = printed(figures_table([("stock example", SLOW), ("colcast late", FAST)]))
    assert "…" not in text
    assert "25 %" in text


def test_what_was_not_measured_is_a_dash():
    assert (milliseconds(NAN), share(NAN, 1.0), share(1.0, NAN), share(1.0, 0.0)) == ("-",) * 4


def test_small_times_have_more_digits():
    assert [milliseconds(value) for value in (0.123, 9.876, 98.76)] == ["0.12", "9.88", "98.8"]
