"""What a server adds to the graph alone, measured in turn."""

from pathlib import Path

import pytest
from colcast.loadtest.formats import RequestData
from colcast.loadtest.overhead import COLUMNS, GraphAlone, overheads
from colcast.loadtest.variants import measure_variants
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
    groups = overheads(served.target, "small", exported / "1", traffic, formats, served.pid)
    lines = measure_variants(groups, 3, COLUMNS, lambda _: None)
    titles = ["tf.Example", "user once", "user late"]
    assert [(line.group, line.title) for line in lines] == [("small, N = 30", it) for it in titles]
    for line in lines:
        assert min(line.figures[name] for name in ("plain ms", "graph ms", "server ms")) > 0


def test_a_request_the_model_refuses_is_an_error_that_says_why(exported: Path, tmp_path: Path):
    with (
        GraphAlone(exported / "1", "server", tmp_path) as graph,
        pytest.raises(ValueError, match="engine_benchmark: "),
    ):
        graph.cpu_seconds(graph.prepare([b"no request"]), 1)
