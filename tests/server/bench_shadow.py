"""Latency with a share of requests shadowed, and with none.

    python -m tests.server.bench_shadow [--rate 150] [--rows 100] [--seconds 5] [--rounds 8]

Columns of `wide`, user late, sent at a rate whatever the answers take; both servers have the same
two versions, and take turns. Shares of p99 are of all rounds together.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.client import RankingClient
from colcast.loadtest.formats import encode
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.recording import Recording, percentile_ms
from colcast.loadtest.schedule import poisson
from colcast.loadtest.turns import in_turn
from colcast.loadtest.variants import zoo_rows
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS
from rich.console import Console

from ..waiting import wait_until
from .metrics_page import Metrics

MODEL, DISTINCT = "wide", 200
_COUNTED = (":colcast:shadow_requests_total", ":colcast:shadow_not_run_total")
CONFIG = """model_config_list {{ config {{ name: "{name}" base_path: "{path}"
  model_platform: "tensorflow" model_version_policy {{ all {{}} }} }} }}"""


def main() -> None:
    """Prints a line per share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=150, help="requests per second")
    parser.add_argument("--rows", type=int, default=100, help="candidates")
    parser.add_argument("--share", type=float, default=0.05, help="of requests, shadowed")
    parser.add_argument("--seconds", type=float, default=5, help="of a turn")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    model = next(columnar(MODELS[MODEL].saved_model(), late=True).resolve().glob("[0-9]*"))
    with TemporaryDirectory() as made, ExitStack() as running:
        folder = Path(made)
        (folder / MODEL).mkdir()
        for version in (1, 2):
            (folder / MODEL / str(version)).symlink_to(model)
        servers = [
            running.enter_context(ServerProcess(flags=flags))
            for flags in (_flags(folder, 0), _flags(folder, arguments.share))
        ]
        for server in servers:
            wait_until(lambda log=server.log: log().count(": serving, loaded in") == 2)
        with RankingClient(servers[0].target, MODEL) as client:
            data = zoo_rows(MODEL)(arguments.rows, DISTINCT)
            requests = [encode(client, "late", one) for one in data]

        def measure(server: ServerProcess, number: int) -> Recording:
            # The first round warms up.
            schedule = poisson(arguments.rate, arguments.seconds, DISTINCT, number)
            return OpenLoop(server.target).run(requests, schedule)

        measured = in_turn(servers, measure, arguments.rounds + 1)
        for share, rounds in zip((0.0, arguments.share), measured, strict=True):
            _tell(share, rounds[1:])
        for sample in Metrics(servers[1]).samples:
            if sample.name in _COUNTED and sample.value:
                what = sample.labels.get("outcome") or sample.labels["reason"]
                Console().print(f"{what}: {sample.value:.0f}", highlight=False)


def _flags(folder: Path, share: float) -> list[str]:
    monitoring = folder / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    config = folder / "models.config"
    config.write_text(CONFIG.format(name=MODEL, path=folder / MODEL))
    # Requests without a version are answered by the highest one.
    shadow = [f"--shadow_model_version={MODEL}:1:{share}"] if share else []
    return [
        f"--model_config_file={config}",
        "--rest_api_port=-1",
        f"--monitoring_config_file={monitoring}",
        *shadow,
    ]


def _tell(share: float, rounds: list[Recording]) -> None:
    latencies = [latency for recording in rounds for latency in recording.latencies]
    errors = sum(recording.errors for recording in rounds)
    figures = ", ".join(f"p{q} {percentile_ms(latencies, q):.2f} ms" for q in (50, 90, 99))
    told = f"{share:.0%} shadowed: {len(latencies)} answers, {errors} errors, {figures}"
    Console().print(told, highlight=False)


if __name__ == "__main__":
    main()
