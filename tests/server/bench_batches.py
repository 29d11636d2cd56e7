"""CPU time of requests that run together against the same requests one by one.

    python -m tests.server.bench_batches [--members 5] [--rows 20]

The engine alone, without queue and gRPC: batch_benchmark runs requests of `wide`, each of a user
and of items of its own, decoding included, one by one and so many together, in turn.
"""

import argparse
import statistics
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.loadtest.tuning import Model, prepared
from colcast.loadtest.variants import zoo_rows
from colcast.server._executable import find_executable
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS
from rich.console import Console

FORMATS = ("late", "columnar", "example")
REQUESTS, ROUNDS = 100, 15


def measure(base_path: Path, files: list[Path], members: int) -> tuple[float, float, float, float]:
    """Milliseconds per request alone and together, the median ratio of a round, and how far off."""
    words = " ".join(map(str, files))
    lines = [f"alone {words}", f"batch {members} {words}"] * (ROUNDS + 1)
    (version,) = (folder for folder in base_path.iterdir() if folder.name.isdigit())
    run = subprocess.run(
        [find_executable().parent / "batch_benchmark", version, "no_stores"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    figures = [tuple(map(float, line.split())) for line in run.stdout.splitlines()][2:]
    alone, together = figures[::2], figures[1::2]
    ratios = [both[0] / one[0] for one, both in zip(alone, together, strict=True)]
    return (
        statistics.median(one[0] for one in alone),
        statistics.median(both[0] for both in together),
        statistics.median(ratios),
        max(both[1] for both in together),
    )


def main() -> None:
    """Prints a line per format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=5, help="requests that run together")
    parser.add_argument("--rows", type=int, default=20, help="candidates of each")
    arguments = parser.parse_args()
    console = Console()
    base_path = columnar(MODELS["wide"].saved_model(), late=True)
    data = zoo_rows("wide")(arguments.rows, REQUESTS)
    with TemporaryDirectory() as folder:
        for name in FORMATS:
            files = []
            for number, request in enumerate(prepared(Model("wide", base_path), [name], data)):
                files.append(Path(folder) / f"{name}.{number}")
                files[-1].write_bytes(request.payload)
            alone, together, ratio, difference = measure(base_path, files, arguments.members)
            console.print(
                f"{name}: {alone:.3f} ms alone, {together:.3f} ms with {arguments.members} in a "
                f"run: {ratio:.2f} times; scores differ by at most {difference:.1g}",
                highlight=False,
                soft_wrap=True,
            )


if __name__ == "__main__":
    main()
