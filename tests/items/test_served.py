"""Requests by key to a real server get the same answers as requests with features."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
from colcast.items import build_delta, build_table
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from ..models import shops
from ..server.inference_client import InferenceClient
from ..server.metrics_page import Metrics, status
from ..server.servers import Stubs
from ..waiting import wait_until

Columns = dict[str, Any]
ITEMS, SHOPS = 200, 30
POLL = "poll_wait_seconds: 0.05"


@pytest.fixture(scope="module", name="base")
def _base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has a model with domains, and room for its tables."""
    folder = tmp_path_factory.mktemp("by_key")
    shops.export(folder)
    return folder


class Items:
    """The rows of one domain with their keys, as columns and as a frame."""

    def __init__(self, domain: str, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.columns = shops.rows(domain, count, random)
        self.key = f"{domain}_key"
        self.keys = random.permutation(10 * count)[:count] - count

    def of(self, rows: Any) -> Columns:
        """The columns at these rows, with lists padded as clients do."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        for name in [name for name in columns if f"{name}/length" in columns]:
            longest = int(columns[f"{name}/length"].max(initial=0))
            columns[name] = columns[name][:, :longest]
        return columns

    def frame(self, rows: Any = slice(None)) -> pd.DataFrame:
        """The frame from which a table of these rows is built."""
        columns: Columns = {self.key: self.keys[rows]}
        for name, column in self.columns.items():
            if name.endswith("/length"):
                continue
            lengths = self.columns.get(f"{name}/length")
            values = list(column[rows])
            if lengths is not None:
                values = [v[:n] for v, n in zip(values, lengths[rows], strict=True)]
            columns[name] = values
        return pd.DataFrame(columns)


@pytest.fixture(name="tables")
def _tables(base: Path, tmp_path: Path) -> Path:
    """A folder that has a table of items and one of shops."""
    for items in (Items("item", ITEMS, 1), Items("shop", SHOPS, 2)):
        domain = items.key.removesuffix("_key")
        build_table(
            base / "served", items.frame(), key=items.key, output=tmp_path / domain, domain=domain
        )
    return tmp_path


def config_of(tables: Path, unknown: str = "REFUSE", poll: str = POLL) -> list[str]:
    """Flags for both tables, and for HTTP."""
    entries = [
        f'table {{ model: "ranker" domain: "{domain}" key: "{domain}_key" '
        f'base_path: "{tables / domain}" unknown_keys: {unknown} {poll} }}'
        for domain in ("item", "shop")
    ]
    file = tables / "tables.config"
    file.write_text("\n".join(entries))
    return [f"--item_table_config_file={file}", *publishing(tables)]


@pytest.fixture(name="server")
def _server(base: Path, tables: Path) -> Iterator[ServerProcess]:
    with ServerProcess("ranker", base / "served", config_of(tables)) as server:
        yield server


def request_of(random: np.random.Generator, rows: Any, shop_rows: Any) -> tuple[Columns, Columns]:
    """A request with features, and the same request with keys."""
    common = shops.rows("user", 1, random) | shops.rows("campaign", 1, random)
    items, shop = Items("item", ITEMS, 1), Items("shop", SHOPS, 2)
    features = common | items.of(rows) | shop.of(shop_rows)
    keys = common | {items.key: items.keys[rows], shop.key: shop.keys[shop_rows]}
    return features, keys


def score(stubs: Stubs, columns: Columns, signature: str) -> Any:
    return stubs.predict(columns, signature_name=signature)["score"]


def refusal(stubs: Stubs, columns: Columns, signature: str = "columnar_late") -> tuple[str, str]:
    """The code and the message of a refused request."""
    with pytest.raises(grpc.RpcError) as error:
        score(stubs, columns, signature)
    return error.value.code().name, error.value.details()


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
def test_by_key_answers_as_with_features(server: ServerProcess, signature: str):
    random = np.random.default_rng(7)
    stubs = Stubs(server.target)
    for count in (1, 2, 20, 100, 20, 100):
        rows, shop_rows = random.integers(0, ITEMS, count), random.integers(0, SHOPS, count)
        features, keys = request_of(random, rows, shop_rows)
        expected = score(stubs, features, signature)
        found = score(stubs, keys, signature)
        if signature == "columnar":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_by_key_over_the_open_inference_protocol(server: ServerProcess):
    random = np.random.default_rng(10)
    rows, shop_rows = random.integers(0, ITEMS, 20), random.integers(0, SHOPS, 3)
    features, keys = request_of(random, rows, shop_rows)
    keys["row_to_shop"] = features["row_to_shop"] = random.integers(0, 3, 20)
    client = InferenceClient(server)
    inputs = {it["name"] for it in client.metadata("ranker", "columnar_late")["inputs"]}
    assert inputs >= {"item_key", "shop_key"}
    for signature in ("columnar", "columnar_late"):
        expected = score(Stubs(server.target), features, signature)
        found = client.infer(keys, signature, model="ranker", outputs=("score",)).as_numpy("score")
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_states_of_rows_by_key_are_found_by_features(server: ServerProcess):
    random = np.random.default_rng(8)
    stubs = Stubs(server.target)
    labels = {"model_name": "ranker", "version": "1", "signature_name": "columnar_late"}

    def computed() -> float:
        return Metrics(server).value(":colcast:states_computed", store="item", **labels)

    features, keys = request_of(random, np.arange(100), np.zeros(1, np.int64))
    score(stubs, keys, "columnar_late")
    known = computed()
    for sent in (features, keys):
        for _ in range(3):
            score(stubs, sent, "columnar_late")
    assert known >= 100
    assert computed() == known


def test_metrics_describe_the_table(server: ServerProcess):
    _, keys = request_of(np.random.default_rng(14), np.arange(20), np.zeros(1, np.int64))
    score(Stubs(server.target), keys, "columnar_late")
    metrics, of = Metrics(server), {"model_name": "ranker", "key": "item_key"}
    assert metrics.value(":colcast:item_table_rows", **of) == ITEMS
    assert metrics.value(":colcast:item_table_version", **of) == 1
    assert metrics.value(":colcast:item_lookups", **of) == 20
    table = next(one for one in status(server)["item_tables"] if one["key"] == "item_key")
    assert (table["model"], table["error"]) == ("ranker", "")


class Load:
    """Sends requests by key, one after another, until the context ends; none may fail."""

    def __init__(self, server: ServerProcess) -> None:
        self._stubs = Stubs(server.target, own_connection=True)
        _, self._keys = request_of(np.random.default_rng(15), np.arange(50), np.zeros(1, np.int64))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answered = 0
        self.errors: list[str] = []

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                score(self._stubs, self._keys, "columnar_late")
                self.answered += 1
            except grpc.RpcError as error:
                self.errors.append(str(error))

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self.answered > 0
        assert not self.errors


def test_a_delta_under_load(server: ServerProcess, tables: Path):
    stubs = Stubs(server.target)
    items, others = Items("item", ITEMS, 1), Items("item", ITEMS, 99)
    others.keys = items.keys
    features, keys = request_of(np.random.default_rng(16), np.arange(20), np.zeros(1, np.int64))
    before = score(stubs, keys, "columnar")
    with Load(server):
        build_delta(tables / "item", others.frame(slice(0, 10)), delete=[int(items.keys[150])])
        wait_until(lambda: not np.array_equal(score(stubs, keys, "columnar"), before))
    rows = np.arange(20)
    columns = {
        name: np.concatenate([others.of(rows[:10])[name], items.of(rows[10:])[name]])
        for name in ("item_id_0", "item_name_0", "item_number_0")
    }
    by_both = {**keys, **columns}
    np.testing.assert_array_equal(score(stubs, keys, "columnar"), score(stubs, by_both, "columnar"))
    assert not np.array_equal(score(stubs, features, "columnar"), score(stubs, keys, "columnar"))
    code, message = refusal(stubs, keys | {"item_key": items.keys[[150]]})
    assert code == "INVALID_ARGUMENT"
    assert str(items.keys[150]) in message


def test_a_switch_of_versions_under_load(base: Path, server: ServerProcess, tables: Path):
    stubs = Stubs(server.target)
    items, others = Items("item", ITEMS, 1), Items("item", ITEMS, 99)
    others.keys = items.keys
    _, keys = request_of(np.random.default_rng(17), np.arange(20), np.zeros(1, np.int64))
    expected = score(stubs, keys | others.of(np.arange(20)), "columnar")
    with Load(server):
        build_table(base / "served", others.frame(), key="item_key", output=tables / "item")
        wait_until(lambda: np.array_equal(score(stubs, keys, "columnar"), expected))
    np.testing.assert_allclose(score(stubs, keys, "columnar_late"), expected, rtol=1e-4, atol=1e-5)


def test_a_hangup_looks_for_new_tables(base: Path, tables: Path):
    flags = config_of(tables, poll="poll_wait_seconds: 3600")
    with ServerProcess("ranker", base / "served", flags) as server:
        items = Items("item", ITEMS, 99)
        build_table(base / "served", items.frame(), key="item_key", output=tables / "item")
        os.kill(server.pid, signal.SIGHUP)
        of = {"model_name": "ranker", "key": "item_key"}
        wait_until(lambda: Metrics(server).value(":colcast:item_table_version", **of) == 2)
