"""What a served signature writes is seen at once by every other one, whatever the record says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models import impure
from .metrics_page import Metrics

KINDS = ["written_variable", "mutable_table"]
OPTIONS = {
    "new export": [],
    "a record that says nothing of writers": ["set"],  # as those of 0.2.0
}


@pytest.fixture(scope="module", name="base_path", params=KINDS)
def _base_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    impure.save(folder / "model", request.param)
    for version, unserved in enumerate(OPTIONS.values(), 1):
        export_saved_model(
            folder / "model",
            folder / "ranker" / str(version),
            user_features=["user_*"],
            late=True,
            unserved_signatures=unserved,
        )
    return folder


@pytest.fixture(name="serve")
def _serve(
    base_path: Path, connect: Any, monitoring: list[str], tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    servers = []

    def start(record: str, *flags: str) -> tuple[ServerProcess, Any]:
        version = [*OPTIONS].index(record) + 1
        (tmp_path / "ranker").mkdir()
        (tmp_path / "ranker/1").symlink_to(base_path / "ranker" / str(version))
        server = ServerProcess("ranker", tmp_path / "ranker", [*monitoring, *flags])
        server.__enter__()
        servers.append(server)
        return server, connect(server.target)

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def kept(server: ServerProcess) -> float:
    return sum(s.value for s in Metrics(server).samples if s.name == ":colcast:states_found_total")


@pytest.mark.parametrize("record", OPTIONS)
@pytest.mark.parametrize("flags", [(), ("--graph_optimization=off",)])
def test_no_state_outlives_what_it_was_computed_from(
    serve: Callable[..., Any], record: str, flags: tuple[str, ...]
) -> None:
    server, stubs = serve(record, *flags)
    request = impure.request(5)
    base = stubs.predict(request, signature_name="columnar_late")["score"]
    for value in (1.0, 2.0, -3.5):
        stubs.predict({"value": np.float32(value)}, signature_name="set")
        for signature in ("columnar_late", "columnar", "serving_default"):
            inputs = request
            if signature == "serving_default":
                inputs = {**request, "user_vector": request["user_vector"].repeat(5, 0)}
            given = stubs.predict(inputs, signature_name=signature)["score"]
            np.testing.assert_allclose(given, base + value, rtol=1e-4, atol=1e-4)
    assert kept(server) == 0
    assert 'which signature "set" writes' in server.log()


def test_states_are_kept_where_the_writer_is_not_served(serve: Callable[..., Any]) -> None:
    record = "a record that says nothing of writers"
    server, stubs = serve(record, "--unserved_signatures=set")
    for _ in range(40):
        stubs.predict(impure.request(5), signature_name="columnar_late")
    assert kept(server) > 0
