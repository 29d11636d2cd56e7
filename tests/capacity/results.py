"""Results of one server as `colcast loadtest` writes them, from simulated load."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from colcast.capacity.routing import Routing
from colcast.capacity.simulation import Replicas, Work, poisson_arrivals, simulate
from colcast.loadtest.observation import QUANTILES

TURNS = Routing("in turn")


def observed(
    rate: float, *, calls: int = 4000, workers: int = 2, mean_ms: float = 4.0, **more: Any
) -> dict[str, Any]:
    """A window of a server that occupies a worker for all of a request's time."""
    random = np.random.default_rng(int(rate))
    seconds = random.gamma(4.0, mean_ms / 4000, calls)
    users = np.zeros(calls, np.int64)
    work = Work(seconds, seconds)
    arrivals = poisson_arrivals(rate, calls, 3)
    found = simulate(arrivals, users, TURNS, Replicas(1, workers), work, work)
    return {
        "calls": calls,
        "errors": 0,
        "kept_up": True,
        "per_second": rate,
        "server_cpu_ms": mean_ms,
        "users_found": None,
        "quantiles_ms": [[one, 1000 * np.percentile(found.seconds, one)] for one in QUANTILES],
        **more,
    }


def load_test(rate: float, label: str = "late", **given: Any) -> dict[str, Any]:
    """report.json of a load test at a rate; what capacity does not read is left out."""
    series = {"label": label, "sound": True, "search": None, "observed": observed(rate, **given)}
    return {"machine": "a machine", "load": {"rate": rate}, "series": [series]}


def written(folder: Path, **results: Any) -> list[str]:
    """The paths of result files by name."""
    for name, result in results.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "report.json").write_text(json.dumps(result))
    return [str(folder / name) for name in results]
