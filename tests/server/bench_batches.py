"""CPU time of requests that run together against the same requests one by one.

    python -m tests.server.bench_batches [--members 5] [--rows 20]

The engine alone, without queue and gRPC: batch_benchmark runs requests of `wide`, each of a user
and of items of its own, decoding included, one by one and so many together, in turn.
"""

import argparse
import subprocess
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.loadtest.variants import Column, Variant, compare
from colcast.loadtest.zoo_models import exported, zoo_payloads
from colcast.server import ServerProcess, find_executable

FORMATS = ("late", "columnar", "example")
REQUESTS, ROUNDS = 100, 15
COLUMNS = (
    Column("CPU ms", itemgetter(0), ".3f", compared=True),
    Column("largest difference", lambda it: it[1] if len(it) > 1 else 0.0, ".1g", max),
)


def groups(
    base_path: Path, folder: Path, rows: int, members: int
) -> Iterator[tuple[str, list[Variant]]]:
    """Alone and together, in each format."""
    (version,) = base_path.glob("[0-9]*")
    command = [find_executable().with_name("batch_benchmark"), version, "no_stores"]
    pipe = subprocess.PIPE
    for name in FORMATS:
        with ServerProcess("wide", base_path) as server:
            payloads = zoo_payloads(server.target, "wide", name, rows, REQUESTS)
        files = [folder / f"{name}.{number}" for number in range(REQUESTS)]
        for file, payload in zip(files, payloads, strict=True):
            file.write_bytes(payload)
        words = " ".join(map(str, files))
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:

            def turn(_: int, line: str, process: "subprocess.Popen[str]" = process) -> list[float]:
                assert process.stdin
                assert process.stdout
                print(line, file=process.stdin, flush=True)
                return [float(figure) for figure in process.stdout.readline().split()]

            yield (
                f"{name}, N = {rows}",
                [
                    Variant("alone", partial(turn, line=f"alone {words}")),
                    Variant(f"{members} in a run", partial(turn, line=f"batch {members} {words}")),
                ],
            )


def main() -> None:
    """Prints two lines per format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=5, help="requests that run together")
    parser.add_argument("--rows", type=int, default=20, help="candidates of each")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        made = groups(exported("wide"), Path(folder), arguments.rows, arguments.members)
        compare(made, ROUNDS, COLUMNS)


if __name__ == "__main__":
    main()
