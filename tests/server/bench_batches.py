"""CPU time of requests that run together against the same requests one by one.

    python -m tests.server.bench_batches [--members 5] [--rows 20]

The engine alone, without queue and gRPC: batch_benchmark runs requests of `wide`, each of a user
and of items of its own, decoding included, one by one and so many together, in turn.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from colcast.loadtest.answering import Answering
from colcast.loadtest.variants import Column, Variant, measure_variants
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
    for name in FORMATS:
        with ServerProcess("wide", base_path) as server:
            payloads = zoo_payloads(server.target, "wide", name, rows, REQUESTS)
        files = [folder / f"{name}.{number}" for number in range(REQUESTS)]
        for file, payload in zip(files, payloads, strict=True):
            file.write_bytes(payload)
        with Answering(command) as process:

            def turn(_: int, words: Sequence[object], ask: Any = process.ask) -> list[float]:
                return [float(figure) for figure in ask(*words).split()]

            yield (
                f"{name}, N = {rows}",
                [
                    Variant("alone", partial(turn, words=("alone", *files))),
                    Variant(f"{members} in a run", partial(turn, words=("batch", members, *files))),
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
        measure_variants(made, ROUNDS, COLUMNS)


if __name__ == "__main__":
    main()
