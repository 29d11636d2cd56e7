"""While a server runs, deltas of tables are applied in order, or refused by name."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from colcast.items import build_row_delta
from colcast.items.cli import tables as command
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2

from ..models import shops, tables
from ..waiting import wait_until
from .metrics_page import Metrics, states_computed, status
from .servers import STATES_OFF

IDS = np.int64([3, 0, 49, 3, 17])
ROWS = np.arange(14, dtype=np.float32).reshape(2, 7)  # the new values of rows 3 and 49
Ask = Callable[..., Any]


@pytest.fixture(scope="module", name="saved")
def _saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    tables.save(folder / "1")
    return folder / "1"


@pytest.fixture(name="base_path")
def _base_path(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "ranker" / "1")
    return tmp_path / "ranker"


@pytest.fixture(name="server")
def _server(base_path: Path, monitoring: list[str]) -> Iterator[ServerProcess]:
    flags = ["--map_tables_min_bytes=1", *monitoring, "--file_system_poll_wait_seconds=1"]
    with ServerProcess("ranker", base_path, flags) as server:
        yield server


@pytest.fixture(name="ask")
def _ask(server: ServerProcess, connect: Any) -> Ask:
    client = connect(server.target)

    def ask(signature: str = "by_handle", ids: Any = IDS) -> Any:
        (answer,) = client.predict({"ids": ids}, signature_name=signature).values()
        return np.asarray(answer)

    return ask


def publish(
    base_path: Path, table: str = "by_handle", shape: Any = (7,), dtype: Any = "f4"
) -> Path:
    rows = ROWS.reshape(2, 7)[:, : np.prod(shape)].reshape(2, *shape).astype(dtype)
    return build_row_delta(
        base_path, pd.DataFrame({"id": [3, 49], "vector": rows.tolist()}), table=table
    )


def served(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = status(server)["models"][0]["versions"][0]["tables"]
    return found


def applied(server: ServerProcess, number: int) -> None:
    wait_until(lambda: served(server)["deltas"] == number)


@pytest.mark.parametrize(
    ("table", "shape"), [*((name, (7,)) for name in tables.GATHERED[:4]), ("of_halves", (3, 2))]
)
def test_rows_of_a_delta_take_the_place_of_the_files(
    table: str, shape: Any, base_path: Path, server: ServerProcess, ask: Ask
):
    before = ask(table).reshape(len(IDS), -1)
    publish(base_path, table, shape)
    applied(server, 1)
    after = ask(table).reshape(len(IDS), -1)
    assert (after[[0, 2, 3]] == ROWS[[0, 1, 0], : np.prod(shape)]).all()
    assert (after[[1, 4]] == before[[1, 4]]).all()


def test_a_delta_is_refused_by_name_and_the_next_one_in_its_place_is_applied(
    base_path: Path, server: ServerProcess, ask: Ask
):
    before = ask("whole").tobytes()
    path = publish(base_path, "whole")
    wait_until(lambda: served(server)["delta_error"])
    error = served(server)["delta_error"]
    assert str(path) in error
    assert 'table "whole" is not mapped: signature "whole" reads it by MatMul' in error
    assert error in server.log()
    labels = {"model_name": "ranker", "version": "1"}
    assert Metrics(server).value(":colcast:table_delta_refused", **labels) == 1
    assert ask("whole").tobytes() == before
    path.unlink()
    publish(base_path)
    applied(server, 1)
    assert served(server)["delta_error"] == ""
    assert Metrics(server).value(":colcast:table_deltas", **labels) == 1


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def make_endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("damage", [flip, make_endless])
def test_a_file_that_is_no_delta_is_named_and_serving_continues(
    damage: Callable[[Path], None], base_path: Path, server: ServerProcess, ask: Ask, tmp_path: Path
):
    before = ask().tobytes()
    good = publish(base_path)
    good.rename(tmp_path / "good")
    shutil.copy(tmp_path / "good", tmp_path / "bad")
    damage(tmp_path / "bad")
    (tmp_path / "bad").rename(good)
    wait_until(lambda: str(good) in served(server)["delta_error"])
    assert ask().tobytes() == before
    (tmp_path / "good").rename(good)
    applied(server, 1)
    changed = ask().tobytes()
    assert changed != before
    damage(good)
    assert ask().tobytes() == changed


def test_a_new_version_applies_none_of_the_old_ones_deltas(
    base_path: Path, saved: Path, server: ServerProcess, ask: Ask
):
    before = ask().tobytes()
    publish(base_path)
    applied(server, 1)
    tables.save(base_path / "tmp", seed=1)
    shutil.copytree(base_path / "1/deltas", base_path / "tmp/deltas")  # made for version 1
    (base_path / "tmp").rename(base_path / "2")
    wait_until(lambda: "made for the checkpoint" in server.log())
    shutil.copytree(saved, base_path / "tmp")
    (base_path / "tmp").rename(base_path / "3")
    wait_until(lambda: ask().tobytes() == before)


def test_existing_deltas_are_applied_before_a_version_serves(
    base_path: Path, connect: Any, monitoring: list[str]
):
    publish(base_path)
    flags = ["--map_tables_min_bytes=1", *monitoring]
    with ServerProcess("ranker", base_path, flags) as server:
        (answer,) = (
            connect(server.target).predict({"ids": IDS}, signature_name="by_handle").values()
        )
        assert (np.asarray(answer)[2] == ROWS[1]).all()
        ran = CliRunner().invoke(
            command, ["inspect", str(base_path), "--server", server.rest_target, "--json"]
        )
        found = json.loads(ran.output)
        assert found["server"] == {"address": server.rest_target, "deltas": 1, "error": ""}
        why = {one["name"]: one["in_memory_because"] for one in found["tables"]}
        assert why["by_handle"] == ""
        assert why["whole"].startswith('signature "whole" reads it by MatMul')


def table_of(version: Path, feature: str) -> str:
    """The name of the variable that holds a feature's rows."""
    saved = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
    (graph,) = saved.meta_graphs
    nodes = {node.name: node for node in graph.graph_def.node}
    read = [graph.signature_def["columnar"].inputs[feature].name.partition(":")[0]]
    while True:
        node = nodes[read.pop(0)]
        if node.op in ("GatherV2", "ResourceGather"):
            break
        read += [one.name for one in nodes.values() if {node.name, f"{node.name}:0"} & {*one.input}]
    while node.op != "VarHandleOp":
        node = nodes[node.input[0].partition(":")[0]]
    return str(node.attr["shared_name"].s.decode())


def test_states_that_read_the_table_are_computed_again_and_no_others(
    shops_path: Path, tmp_path: Path, connect: Any, monitoring: list[str]
):
    base_path = tmp_path / "ranker"
    shutil.copytree(shops_path, base_path)
    random = np.random.default_rng(11)
    counts = {"user": 1, "item": 8, "shop": 8, "campaign": 8}
    columns: dict[str, Any] = {}
    for domain, count in counts.items():
        columns |= shops.rows(domain, count, random)

    def served_with(*flags: str) -> ServerProcess:
        return ServerProcess("ranker", base_path, ["--map_tables_min_bytes=1", *monitoring, *flags])

    def scores(server: ServerProcess) -> Any:
        stubs = connect(server.target)
        return stubs.predict(columns, signature_name="columnar_late")["score"]

    with served_with() as server:
        stubs = connect(server.target)
        stubs.server = server

        def computed() -> dict[str, float]:
            return {domain: states_computed(stubs, domain) for domain in counts}

        before = scores(server)
        first = computed()
        assert scores(server).tobytes() == before.tobytes()
        assert computed() == first
        rows = random.normal(size=(64, 16)).astype(np.float32)
        frame = pd.DataFrame({"id": np.arange(64), "vector": rows.tolist()})
        build_row_delta(base_path, frame, table=table_of(base_path / "1", "item_id_0"))
        applied(server, 1)
        after = scores(server)
        assert computed() == {**first, "item": first["item"] + 8}
    with served_with(*STATES_OFF) as server:
        np.testing.assert_allclose(after, scores(server), rtol=1e-5)
    assert not np.isclose(after, before, rtol=1e-3).any()
