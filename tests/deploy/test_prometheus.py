"""deploy/prometheus: promtool passes, and rules and dashboard read what a server publishes.

promtool is in Debian's package `prometheus`, which `make setup` does not install, because it starts
a Prometheus on the machine.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from colcast.items import build_table
from colcast.server import ServerProcess

from .. import models
from ..models import shops
from ..server.metrics_page import Metrics
from ..server.servers import FAST, Stubs
from ..waiting import wait_until

PROMETHEUS = Path(__file__).resolve().parents[2] / "deploy/prometheus"
RULES = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())
TESTS = Path(__file__).with_name("alerts.test.yml")
DASHBOARD = json.loads((PROMETHEUS / "dashboard.json").read_text())
QUERIES = [t["expr"] for panel in DASHBOARD["panels"] for t in panel.get("targets", ())]
EXPRESSIONS = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]] + QUERIES
ALERTS = {rule["alert"] for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
# Labels that Prometheus adds (instance, job), and the label of a histogram's buckets (le).
ADDED = {"instance", "job", "le"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_passes(tmp_path: Path) -> None:
    """The rules of the dashboard's queries show that these parse."""
    queries = (query.replace("$__rate_interval", "1m") for query in QUERIES)
    rules = [{"record": "query", "expr": query} for query in queries]
    dashboard = tmp_path / "dashboard.yml"
    dashboard.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    for arguments in (
        ("check", "config", PROMETHEUS / "prometheus.yml"),
        ("check", "rules", dashboard),
        ("test", "rules", TESTS),
    ):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tested_and_documented() -> None:
    healthy, faults = yaml.safe_load(TESTS.read_text())["tests"]
    for group in (healthy, faults):
        assert {one["alertname"] for one in group["alert_rule_test"]} == ALERTS
    page = (PROMETHEUS.parents[1] / "docs/metrics.md").read_text()
    assert set(re.findall(r"`(Colcast\w+)`", page)) == ALERTS


@pytest.fixture(scope="module", name="page")
def _page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """What a server publishes that has stages, mapped tables, items by key and a broken version."""
    folder = tmp_path_factory.mktemp("site")
    shops.export(folder)
    models.build("weighted", folder / "weighted" / "1")
    items = shops.rows("item", 5, np.random.default_rng(1))
    frame = {name: list(items[name]) for name in items if not name.endswith("/length")}
    table = pd.DataFrame({"item_key": np.arange(5), **frame})
    build_table(folder / "served", table, key="item_key", output=folder / "items")
    configs = (
        f'config {{ name: "{name}" base_path: "{folder / path}" model_platform: "tensorflow" }}'
        for name, path in (("shops", "served"), ("weighted", "weighted"))
    )
    (folder / "models.config").write_text(f"model_config_list {{ {' '.join(configs)} }}")
    flags = [f"--model_config_file={folder}/models.config", "--map_tables_min_bytes=1"]
    flags += [f"--item_table=shops:item_key:{folder}/items", "--rest_api_port=-1", *FAST]
    with ServerProcess(flags=flags) as server:
        random = np.random.default_rng(1)
        columns: dict[str, Any] = {"item_key": np.arange(5)}
        for domain in ("user", "campaign", "shop"):
            columns |= shops.rows(domain, 1, random)
        Stubs(server.target, model="shops").predict(columns, signature_name="columnar_late")
        (folder / "weighted/2").mkdir()
        (folder / "weighted/2/saved_model.pb").write_text("malformed")
        refused = ":colcast:versions_refused"
        wait_until(lambda: Metrics(server, "/metrics").value(refused, model_name="weighted") == 1)
        metrics = Metrics(server, "/metrics")
    found: dict[str, list[dict[str, str]]] = {}
    for family in metrics.families:
        found.setdefault(family.name, [])
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def labels_read(expression: str) -> set[str]:
    grouped = " ".join(re.findall(r"(?:by|on) \(([^)]*)\)", expression))
    selected = " ".join(re.findall(r"{([^}]*)}", expression))
    return set(re.findall(r"\w+", grouped)) | set(re.findall(r"(\w+)(?=[!=])", selected))


def test_expressions_read_what_a_server_publishes(page: Any) -> None:
    for expression in EXPRESSIONS:
        names = set(re.findall(r"(?:\bprocess_|:colcast:|:tensorflow:)[a-z_:]+", expression))
        assert names or "up{" in expression or "colcast:" in expression
        missing = [n for n in names if {n, n.removesuffix("_total")}.isdisjoint(page)]
        assert missing == [], expression
        published = {label for name in names for labels in page.get(name, ()) for label in labels}
        if published:
            assert labels_read(expression) - ADDED <= published, expression
