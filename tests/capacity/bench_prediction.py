"""What `colcast capacity` predicts of one real server, against what `colcast loadtest` measures.

    python -m tests.capacity.bench_prediction wide --sizes 1500 --rates 20 40
    python -m tests.capacity.bench_prediction slow --rates 80 120 --slas 15 30

`wide` computes; `slow` takes 5 ms without a processor, so that other work on the machine does not
matter. The prediction knows the server at some rates only; then the highest rate within each
target, and the p99 at it, are measured.
"""

import argparse
import json
import os
import tempfile
from functools import partial
from operator import itemgetter
from pathlib import Path

from colcast.capacity.costs import costs_of
from colcast.capacity.measured import read
from colcast.capacity.plan import Model, highest_rate
from colcast.capacity.routing import Routing
from colcast.cli.main import main as colcast
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.variants import Column, Variant, measure_variants
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess

from .. import models

COLUMNS = [
    Column(heading, itemgetter(place), ".1f")
    for place, heading in enumerate(
        ("rate predicted", "measured", "p99 predicted there, ms", "p99 measured, ms")
    )
]


def served(name: str, folder: Path) -> Path:
    """The base path of a model."""
    if name == "wide":
        return exported(name)
    models.build("slow", folder / "served" / "1", milliseconds=5)
    return folder / "served"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=("wide", "slow"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--sizes", default="2")
    parser.add_argument("--rates", type=float, nargs="+", required=True, help="that are known")
    parser.add_argument("--slas", type=float, nargs="+", default=[60.0, 120.0], help="ms")
    parser.add_argument("--seconds", default="10", help="of a window")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        flags = [f"--num_workers={options.workers}", "--join_waiting_requests=0", *NO_STATES]
        with ServerProcess(options.model, served(options.model, folder), flags) as server:
            compare(server, options, folder)


def compare(server: ServerProcess, options: argparse.Namespace, folder: Path) -> None:
    """Measures what may be known, predicts, measures the rest."""

    def measured(name: str, *load: str) -> Path:
        late = "late" if options.model == "wide" else "repeated"
        command = ["loadtest", "--target", server.target, "--model", options.model]
        command += ["--formats", late, "--sizes", options.sizes, "--output", str(folder / name)]
        colcast([*command, "--windows", "3", "--seconds", options.seconds, *load])
        return folder / name

    known = [read(measured("alone", "--clients", "1"))]
    known += [read(measured(f"at{rate:g}", "--rate", str(rate))) for rate in options.rates]
    costs = costs_of(known, options.workers, by_user=False)
    model = Model(costs.hit, costs.miss, options.workers)
    print(costs)

    def turn(number: int, sla: float) -> list[float]:
        if number < 0:
            return []
        result = measured(f"sla{sla:g}", "--find-max", "--sla-p99", f"{sla:g}ms")
        series = json.loads((result / "report.json").read_text())["series"][0]
        rate = series["search"]["highest_rate"] or float("nan")
        predicted = highest_rate(model, sla), model.run(rate, 1, Routing("")).p99_ms
        return [predicted[0], rate, predicted[1], series["figures"]["p99_ms"]]

    targets = [Variant(f"p99 at most {sla:g} ms", partial(turn, sla=sla)) for sla in options.slas]
    measure_variants([(options.model, targets)], 1, COLUMNS)


if __name__ == "__main__":
    main()
