"""The metrics page as Prometheus reads it, and the status page's JSON."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from colcast.server import ServerProcess
from prometheus_client.parser import text_string_to_metric_families

from ..waiting import wait_until

PATH = "/monitoring/prometheus/metrics"


def status(server: ServerProcess) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{server.rest_target}/status.json", timeout=120) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        figures: dict[str, Any] = json.load(answer)
        return figures


class Metrics:
    """The metrics page at one moment."""

    def __init__(self, server: ServerProcess, path: str = PATH) -> None:
        url = f"http://{server.rest_target}{path}"
        with urllib.request.urlopen(url, timeout=120) as page:
            assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            self.families = list(text_string_to_metric_families(page.read().decode()))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The value of the sample with this name and exactly these labels; 0 if there is none."""
        # the parser appends "_total" to every counter
        names = (name, f"{name}_total")
        found = [s.value for s in self.samples if s.name in names and s.labels == labels]
        assert len(found) <= 1
        return float(found[0]) if found else 0.0


def of_predicts(stubs: Any, metric: str, signature: str, entrypoint: str = "GRPC") -> float:
    """The value of a counter for Predict requests to a model."""
    return Metrics(stubs.server).value(
        f":colcast:{metric}",
        model_name=stubs.model,
        signature_name=signature,
        API="Predict",
        entrypoint=entrypoint,
    )


def until_joined(
    ask: Callable[[], None], stubs: Any, signature: str, entrypoint: str = "GRPC"
) -> None:
    """Calls ask() until some of its requests have run together, which a busy machine may delay."""

    def joined() -> float:
        return of_predicts(stubs, "joined_requests", signature, entrypoint)

    before = joined()

    def some_ran_together() -> bool:
        ask()
        return joined() > before

    wait_until(some_ran_together)
