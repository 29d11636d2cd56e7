"""Compares the formats in a Locust run: on the console, as CSV and on the web page."""

import csv
import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

from colcast.cli.console import counted, report_console
from colcast.loadtest.locust.turns import ALL, Turns
from colcast.loadtest.measure.recording import milliseconds, share
from flask import Response, request
from rich.box import SIMPLE
from rich.table import Table

_CSV = ("format", "answered", "failed", "p50_ms", "p95_ms", "request_bytes", "server_cpu_ms")
# Each of these figures is followed by its share of the first format's figure.
_SHARES = ("p50_ms", "p95_ms", "request_bytes", "server_cpu_ms")
_ENOUGH_ROUNDS = 3


class Comparison:
    """The comparison of a run so far."""

    def __init__(self, turns: Turns) -> None:
        """Compares the formats by the requests and CPU time that `turns` has counted."""
        self._turns = turns

    def rows(self) -> list[dict[str, Any]]:
        """One row per format, in the order of `colcast loadtest`.

        Latencies and server CPU are in milliseconds; CPU is NaN if it is not known for each format.
        """
        turns = self._turns
        rows = []
        for name in turns.formats:
            calls = turns.calls(name)
            if calls.num_requests:
                rows.append(
                    {
                        "format": name,
                        "answered": turns.answered(name),
                        "failed": calls.num_failures,
                        "p50_ms": turns.percentile_ms(name, 50),
                        "p95_ms": turns.percentile_ms(name, 95),
                        "request_bytes": calls.total_content_length / calls.num_requests,
                        "server_cpu_ms": turns.cpu_ms(name),
                    }
                )
        return rows

    def notes(self) -> list[str]:
        """Remarks about the server's CPU, with the spread of the formats' shares."""
        turns = self._turns
        if turns.not_measured:
            return [f"server CPU is not measured: {turns.not_measured}"]
        if not turns.round_seconds:
            if (mixed := turns.cpu_ms(ALL)) != mixed:
                return ["server CPU is shown once the run has ended"]
            each = "" if len(turns.formats) < 2 else ", all formats; --turns separates them"
            return [f"server CPU: {milliseconds(mixed)} ms per answered request{each}"]
        notes = ["CPU ms: the server's user and system time per answered request"]
        first, *others = turns.formats
        found = {name: shares for name in others if (shares := turns.shares(name))}
        rounds = max((shares.rounds for shares in found.values()), default=0)
        if others and rounds < _ENOUGH_ROUNDS:
            notes.append(
                f"{counted(rounds, 'complete round')} of turns: run at least {_ENOUGH_ROUNDS}, "
                f"{_ENOUGH_ROUNDS * turns.round_seconds} s, to see how much CPU varies"
            )
        notes += [
            f"{name}: {100 * of.low:.0f} to {100 * of.high:.0f} % of the CPU of "
            f"{first} in {counted(of.rounds, 'round')}"
            for name, of in found.items()
        ]
        return notes

    def print(self) -> None:
        """Prints a table, or nothing if nothing was sent."""
        rows = self.rows()
        if not rows:
            return
        console = report_console()
        console.print(_table(rows))
        for note in self.notes():
            console.print(note, markup=False)

    def csv(self) -> str:
        """One line per format, with shares of the first format's figures; empty if unknown."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        shares = [f"{name}_share" for name in _SHARES]
        writer.writerow([*_CSV, *shares])
        rows = self.rows()
        for row in rows:
            values = [row[name] for name in _CSV]
            values += [row[name] / rows[0][name] for name in _SHARES]
            writer.writerow(
                [
                    ("" if one != one else f"{one:.4g}") if isinstance(one, float) else one
                    for one in values
                ]
            )
        return text.getvalue()


_COLUMNS = {
    "format": "Format",
    "answered": "Answered",
    "failed": "Failed",
    "p50": "p50 ms",
    "p95": "p95 ms",
    "bytes": "Bytes",
    "cpu": "CPU ms",
}


def _cells(row: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """A row's texts, in the order of the columns, with each share in brackets after its figure."""
    texts = [milliseconds(row[name]) for name in _SHARES]
    texts[_SHARES.index("request_bytes")] = f"{row['request_bytes']:,.0f}"
    shares = [share(row[name], first[name]) for name in _SHARES]
    pairs = zip(texts, shares, strict=True)
    figures = [text if of == "-" else f"{text} ({of})" for text, of in pairs]
    return [row["format"], f"{row['answered']:,}", f"{row['failed']:,}", *figures]


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE, padding=0)
    for title in _COLUMNS.values():
        table.add_column(title, justify="right" if table.columns else "left", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, rows[0]))
    return table


_KEY = "comparison"
_FILE = "/comparison.csv"


def add_tab(web_ui: Any, comparison: Comparison) -> None:
    """Adds a tab to a locust.web.WebUI, whose page requests `/stats/requests` during a run."""
    web_ui.template_args.update(
        extended_tabs=[{"title": "Comparison", "key": _KEY}],
        extended_tables=[
            {
                "key": _KEY,
                "structure": [{"key": key, "title": title} for key, title in _COLUMNS.items()],
            }
        ],
        extended_csv_files=[{"href": f".{_FILE}", "title": "Download comparison CSV"}],
    )

    @web_ui.app.after_request  # type: ignore[untyped-decorator]
    def with_comparison(response: Response) -> Response:
        if request.path.endswith("/stats/requests") and response.is_json:
            stats = [{"key": _KEY, "data": _rows(comparison)}]
            response.set_data(json.dumps(dict(response.get_json(), extended_stats=stats)))
        return response

    @web_ui.app.route(_FILE)  # type: ignore[untyped-decorator]
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]
    def download() -> Response:
        headers = {"Content-Disposition": "attachment;filename=comparison.csv"}
        return Response(comparison.csv(), mimetype="text/csv", headers=headers)


def _rows(comparison: Comparison) -> list[dict[str, str]]:
    """The rows of the tab, followed by the notes."""
    rows = comparison.rows()
    shown = [dict(zip(_COLUMNS, _cells(row, rows[0]), strict=True)) for row in rows]
    return shown + [{"format": note} for note in comparison.notes() if rows]
