"""The tab "Comparison" of Locust's web page, and its download."""

import json
from typing import Any

from colcast.loadtest.locust.comparison import Comparison, texts
from flask import Response, request

_KEY = "comparison"
_FILE = "/comparison.csv"
_COLUMNS = {
    "format": "Format",
    "answered": "Answered",
    "failed": "Failed",
    "p50": "p50 (ms)",
    "p95": "p95 (ms)",
    "bytes": "Bytes per request",
    "cpu": "Server CPU (ms per request)",
}


def add_tab(web_ui: Any, comparison: Comparison) -> None:
    """Adds the tab to a locust.web.WebUI, whose page requests `/stats/requests` during a run."""
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
    """The rows of the tab, with each share in brackets after its figure."""
    rows = comparison.rows()
    shown = []
    for row in rows:
        answered, failed, *figures = texts(row, rows[0])
        pairs = zip(figures[::2], figures[1::2], strict=True)
        told = [text if share == "-" else f"{text} ({share})" for text, share in pairs]
        shown.append(dict(zip(_COLUMNS, [row["format"], answered, failed, *told], strict=True)))
    return shown + [{"format": note} for note in comparison.notes() if rows]
