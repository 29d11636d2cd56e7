"""Latency with a share of requests shadowed, and with none.

    python -m tests.server.bench_shadow [--rate 150] [--rows 100] [--seconds 5] [--rounds 8]

Columns of `wide`, user late, sent at a rate whatever the answers take; both servers have the same
two versions, and take turns.
"""

import argparse
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.loadtest.connection import Request
from colcast.loadtest.metrics import publishing
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.recording import Recording
from colcast.loadtest.schedule import poisson
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import ERRORS, LATENCY, Variant, measure_variants
from colcast.loadtest.zoo_models import exported, zoo_payloads
from colcast.server import ServerProcess

from ..waiting import wait_until
from .metrics_page import Metrics

COLUMNS = (*LATENCY, ERRORS)
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
    version = next(exported(MODEL).resolve().glob("[0-9]*"))
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / MODEL).mkdir()
        for number in (1, 2):
            (folder / MODEL / str(number)).symlink_to(version)
        config = folder / "models.config"
        config.write_text(CONFIG.format(name=MODEL, path=folder / MODEL))
        flags = [f"--model_config_file={config}", *publishing(folder)]
        # Requests without a version are answered by the highest one.
        shadow = f"--shadow_model_version={MODEL}:1:{arguments.share}"
        with servers("", "", flags, [*flags, shadow]) as running:
            for server in running:
                wait_until(lambda log=server.log: log().count(": serving, loaded in") == 2)
            payloads = zoo_payloads(running[0].target, MODEL, "late", arguments.rows, DISTINCT)
            requests = [Request(payload, arguments.rows) for payload in payloads]

            def turn(number: int, server: ServerProcess) -> Recording:
                schedule = poisson(arguments.rate, arguments.seconds, DISTINCT, number + 1)
                return OpenLoop(server.target).run(requests, schedule)

            variants = [
                Variant(f"{share:.0%} shadowed", partial(turn, server=server))
                for share, server in zip((0.0, arguments.share), running, strict=True)
            ]
            measure_variants(
                [(f"{arguments.rate:g} per second", variants)], arguments.rounds, COLUMNS
            )
            for sample in Metrics(running[1]).samples:
                if sample.name in _COUNTED and sample.value:
                    what = sample.labels.get("outcome") or sample.labels["reason"]
                    print(f"{what}: {sample.value:.0f}")


if __name__ == "__main__":
    main()
