"""What a server adds to the graph alone, measured in turn."""

from pathlib import Path

import pytest
from colcast.loadtest.formats import RequestData
from colcast.loadtest.overhead import GraphAlone, overheads
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.examples import serialize_request

from .conftest import SMALL


@pytest.fixture(scope="module")
def request_data() -> RequestData:
    user, items = next(wide.requests(SMALL, 30, 0))
    return RequestData(30, user, items, serialize_request(user, items))


def test_every_size_and_format_has_a_row(
    served: ServerProcess, exported: Path, request_data: RequestData
):
    formats = ["example", "columnar", "late"]
    traffic = {30: [request_data]}
    rows = overheads(served.target, "small", exported / "1", traffic, formats, served.pid)
    assert [(row.candidates, row.format) for row in rows] == [(30, name) for name in formats]
    assert all(min(row.plain_ms, row.graph_ms, row.server_ms) > 0 for row in rows)


def test_a_request_the_model_refuses_is_an_error_that_says_why(exported: Path):
    with (
        GraphAlone(exported / "1", "server") as graph,
        pytest.raises(ValueError, match="engine_benchmark: "),
    ):
        graph.cpu_seconds(graph.prepare([b"no request"]), 1)
