"""The long form of the test: `python -m tests.independence --answers 2000 --models softmax`."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from colcast.export import ExportError
from colcast.server import ServerFailedError, ServerProcess

from ..models import RANKING
from .cases import cases_of
from .exported import Exported
from .hammer import Tallies, hammer
from .servers import VARIANTS, reloading, serve

_POLL = "--file_system_poll_wait_seconds=1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--answers", type=int, default=2000, help="answers per model, in all variants"
    )
    parser.add_argument("--models", nargs="+", default=list(RANKING), choices=RANKING)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument(
        "--reload-seconds", type=float, default=0, help="seconds between new versions; 0 for none"
    )
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as in the server, for equal bits
    for name in args.models:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                exported = Exported(RANKING[name], Path(scratch))
            except ExportError as error:
                print(f"{name}: refused by the export: {str(error)[:200]}", flush=True)
                continue
            cases = cases_of(exported)
            each = args.answers // len(args.variants)
            for variant in args.variants:
                start = time.monotonic()
                try:
                    with (
                        serve([exported], variant, Path(scratch, "config"), _POLL) as server,
                        reloading(exported, args.reload_seconds),
                    ):
                        found = hammer(server, name, cases, each)
                        ended = not _lives(server)
                except ServerFailedError as error:
                    print(f"{name}, {variant}: no server: {str(error)[-300:]}", flush=True)
                    continue
                line = _line(name, variant, found, time.monotonic() - start)
                print(line + "\n    THE SERVER ENDED" * ended, flush=True)


def _lives(server: ServerProcess) -> bool:
    try:
        os.kill(server.pid, 0)
        return Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _line(name: str, variant: str, found: Tallies, seconds: float) -> str:
    cells = []
    for kind, tally in sorted(found.items()):
        cell = f"{kind} {tally.wrong}/{tally.answers}"
        cell += f" ({tally.inexact} inexact)" if tally.inexact else ""
        cells.append(cell + (f" ({tally.refused.total()} refused)" if tally.refused else ""))
    line = f"{name} | {variant} | {seconds:.1f} s | {'; '.join(cells)}"
    for kind, tally in found.items():
        if tally.wrong:
            line += f"\n    {kind}: {tally.shown}"
        for said, times in tally.refused.most_common(2):
            line += f"\n    {kind}: {times} times {said[:160]}"
    return line


if __name__ == "__main__":
    main()
