"""deploy/prometheus: its rules by promtool; its dashboard and alerts beside real servers.

Tests that need Debian's package `prometheus` are skipped without it. `make setup` does not install
it, because the package starts a Prometheus on the machine.
"""

import json
import math
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count, repeat
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
import yaml
from colcast.items import build_table
from colcast.server import ServerProcess, find_executable

from .. import models
from ..models import shops
from ..server.servers import FAST, Stubs
from ..server.tls import EC, Identity, config_flag, openssl
from ..waiting import wait_until

PROMETHEUS = Path(__file__).resolve().parents[2] / "deploy/prometheus"
RULES = PROMETHEUS / "alerts.yml"
TESTS = Path(__file__).with_name("alerts.test.yml")
DASHBOARD = json.loads((PROMETHEUS / "dashboard.json").read_text())
QUERIES = {
    f"{panel['title']}-{target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
}
ALERTS = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
TLS_JOB = {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Debian's package prometheus is not installed"
)


@needs_prometheus
@pytest.mark.parametrize(
    "arguments", [("check", "config", PROMETHEUS / "prometheus.yml"), ("test", "rules", TESTS)]
)
def test_promtool_passes(arguments: tuple[Any, ...]) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tested_and_documented() -> None:
    healthy, faults = yaml.safe_load(TESTS.read_text())["tests"]
    for group in (healthy, faults):
        assert {one["alertname"] for one in group["alert_rule_test"]} == ALERTS
    page = (PROMETHEUS.parents[1] / "docs/metrics.md").read_text()
    assert set(re.findall(r"`(Colcast\w+)`", page)) == ALERTS


class Prometheus:
    """A Prometheus on a free port of 127.0.0.1, with rules whose windows are seconds."""

    def __init__(self, folder: Path, jobs: dict[str, tuple[ServerProcess, dict[str, Any]]]) -> None:
        rules = RULES.read_text()
        shorter = {
            r"\[(5|15)m\]": "[4s]",
            r"\[1d\]": "[5m]",
            r"for: \w+": "for: 0s",
            "> 300": "> 3",
            "> 0.9": "> 0.0001",
        }
        for before, after in shorter.items():
            rules, changed = re.subn(before, after, rules)
            assert changed
        (folder / "alerts.yml").write_text(rules)
        scraped = [
            {"job_name": name, "static_configs": [{"targets": [server.rest_target]}], **more}
            for name, (server, more) in jobs.items()
        ]
        often = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
        config = {"global": often, "rule_files": ["alerts.yml"], "scrape_configs": scraped}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        files = ("--config.file=prometheus.yml", "--storage.tsdb.path=data")
        command = ["prometheus", "--web.listen-address=127.0.0.1:0", *files]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        lines = iter(self.process.stderr.readline, "")
        found = (re.search(r'msg="Listening on" address=(\S+)', line) for line in lines)
        self._address = next(one for one in found if one)[1]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        wait_until(self._is_ready)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def _is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=120).close()
        except urllib.error.HTTPError:
            return False
        return True

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an instant query answers with."""
        query = urllib.parse.urlencode({"query": expression})
        url = f"http://{self._address}/api/v1/query?{query}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return list(json.load(answer)["data"]["result"])

    def fired(self) -> set[str]:
        """The alerts that have fired so far."""
        fired = 'last_over_time(ALERTS{alertstate="firing"}[1h])'
        found = self.query(f"count by (alertname) ({fired})")
        return {one["metric"]["alertname"] for one in found}


class Load:
    """A thread that calls `send` until it is stopped; errors are expected."""

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send = send
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(grpc.RpcError):
                self._send()


def without_log_reader(folder: Path) -> Path:
    """A program that starts the server, and reads its log only until it is ready."""
    program = folder / "server_without_reader"
    reader = "sed -u '/ready: gRPC/q' >&2"
    program.write_text(f'#!/bin/bash\nexec {find_executable()} "$@" 2> >(exec {reader})\n')
    program.chmod(0o755)
    return program


class Site:
    """Two servers, and a Prometheus that reads their metrics.

    `main` has stages, mapped tables, items by key and a slow model. `other` has TLS with a
    certificate that ends in two days, and the reader of its log is gone.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.users: Iterator[int] = repeat(7)
        shops.export(folder)
        models.build("slow", folder / "slow" / "1", milliseconds=150)
        models.build("weighted", folder / "weighted" / "1")
        items = shops.rows("item", 5, np.random.default_rng(1))
        frame = {name: list(items[name]) for name in items if not name.endswith("/length")}
        self.table = folder / "items"
        build_table(
            folder / "served",
            pd.DataFrame({"item_key": np.arange(5), **frame}),
            key="item_key",
            output=self.table,
        )
        bases = {"shops": folder / "served", "slow": folder / "slow"}
        configs = (
            f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" }}'
            for name, path in bases.items()
        )
        file = folder / "models.config"
        file.write_text(f"model_config_list {{ {' '.join(configs)} }}")
        main = (f"--model_config_file={file}", f"--item_table=shops:item_key:{self.table}")
        queue = ("--num_workers=2", "--max_queued_requests=2", "--map_tables_min_bytes=1")
        rest = (*FAST, "--rest_api_port=-1")
        self.main = stack.enter_context(ServerProcess(flags=[*main, *queue, *rest]))
        pair = Identity(folder / "key.pem", folder / "certificate.pem")
        made = ("-keyout", pair.key, "-out", pair.chain)
        openssl("req", "-x509", *EC, "-subj", "/CN=other", "-days", "2", *made)
        tls = config_flag(folder / "tls.config", pair)
        program = without_log_reader(folder)
        base = folder / "weighted"
        self.other = ServerProcess("weighted", base, [tls, *rest], executable=program)
        stack.enter_context(self.other)
        jobs: dict[str, tuple[ServerProcess, dict[str, Any]]]
        jobs = {"colcast": (self.main, {}), "colcast-tls": (self.other, TLS_JOB)}
        self.prometheus = Prometheus(folder, jobs)
        stack.callback(self.prometheus.stop)
        self.stubs = Stubs(self.main.target, model="shops")

    def rank(self, signature: str) -> None:
        """Ranks five items by key for the next user."""
        common = shops.rows("user", 1, np.random.default_rng(next(self.users)))
        random = np.random.default_rng(1)
        common |= shops.rows("campaign", 1, random) | shops.rows("shop", 1, random)
        keys = {"item_key": np.arange(5)}
        self.stubs.predict(common | keys, signature_name=signature)


@pytest.fixture(scope="module", name="site")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path_factory.mktemp("site"), stack)


@pytest.fixture(scope="module", name="under_load")
def _under_load(site: Site) -> Iterator[Site]:
    loads = [Load(lambda name=name: site.rank(name)) for name in ("columnar", "columnar_late")]
    yield site
    for load in loads:
        load.stop()


@needs_prometheus
@pytest.mark.parametrize("name", QUERIES)
def test_each_query_of_the_dashboard_answers(under_load: Site, name: str) -> None:
    query = QUERIES[name].replace("$__rate_interval", "4s").replace("$instance", ".+")

    def answers() -> bool:
        values = [float(one["value"][1]) for one in under_load.prometheus.query(query)]
        return bool(values) and all(map(math.isfinite, values))

    wait_until(answers)


@needs_prometheus
def test_each_alert_fires_on_a_real_fault(under_load: Site) -> None:
    site, fired = under_load, under_load.prometheus.fired
    slow = Stubs(site.main.target, model="slow")
    loads: list[Load] = []
    site.users = count(100)  # no user comes twice
    try:
        wait_until(lambda: "ColcastHitRateFell" in fired())
        loads += [Load(lambda: slow.predict({"x": [1.0]})) for _ in range(8)]
        wrong = [site.table / "2/table.safetensors"]
        wrong += [site.folder / name / "2/saved_model.pb" for name in ("slow", "weighted")]
        for file in wrong:
            file.parent.mkdir()
            file.write_text("malformed")
        (site.folder / "served").rename(site.folder / "unmounted")
        wait_until(lambda: fired() >= ALERTS - {"ColcastDown"})
        site.main.kill()
        wait_until(lambda: fired() == ALERTS)
    finally:
        for load in loads:
            load.stop()
