"""The long form of the test: `python -m tests.independence --answers 2000 --models softmax`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from colcast.export import ExportError
from colcast.server import ServerFailedError, ServerProcess

from ..models import RANKING
from ..waiting import wait_until
from .cases import cases_of
from .exported import Exported
from .hammer import TOLERANCE, Tallies, Tally, hammer
from .servers import VARIANTS, available, reloading, serve

_POLL = "--file_system_poll_wait_seconds=1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--answers", type=int, default=2000, help="answers per model, in all variants and retrained"
    )
    parser.add_argument("--models", nargs="+", default=list(RANKING), choices=RANKING)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument(
        "--reload-seconds", type=float, default=0, help="seconds between new versions; 0 for none"
    )
    parser.add_argument("--seed", type=int, default=0, help="draws other requests")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="fails if an answer differs by more"
    )
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as in the server, for equal bits
    every, began = Tally(), time.monotonic()
    for name in args.models:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                exported = Exported(RANKING[name], Path(scratch))
            except ExportError as error:
                print(f"{name}: refused by the export: {str(error)[:200]}", flush=True)
                continue
            for found in _hammered(exported, args, Path(scratch)):
                for tally in found.values():
                    every.merge(tally)
    print(
        f"{every.answers} answers, {every.wrong} wrong, {every.inexact} inexact,"
        f" {every.refused.total()} refused, largest difference {every.largest:.1e},"
        f" {time.monotonic() - began:.0f} s"
    )
    sys.exit(every.largest > args.tolerance)


def _hammered(exported: Exported, args: argparse.Namespace, scratch: Path) -> Iterator[Tallies]:
    """Sends requests in every variant; in the first, also after the variables are replaced."""
    cases = cases_of(exported, seed=args.seed)
    each = args.answers // (len(args.variants) + 1)
    retrained = exported.retrained(scratch / "retrained")
    for variant in args.variants:
        served = retrained if variant == args.variants[0] else exported
        start = time.monotonic()
        try:
            with serve([served], variant, scratch / "config", _POLL) as server:
                with reloading(served, args.reload_seconds):
                    found = hammer(server, exported.model.name, cases, each, args.seed)
                _report(exported, variant, found, start, server)
                yield found
                if served is retrained:
                    last = max(int(v.name) for v in served.base_path.iterdir() if v.name.isdigit())
                    newest = str(last + 1)
                    (scratch / "retrained/2").rename(served.base_path / newest)
                    wait_until(lambda: available(server, exported.model.name) == [newest])  # noqa: B023
                    after = cases_of(retrained, seed=args.seed)
                    found = hammer(server, exported.model.name, after, each, args.seed)
                    _report(exported, "retrained", found, start, server)
                    yield found
        except ServerFailedError as error:
            print(f"{exported.model.name}, {variant}: no server: {str(error)[-300:]}", flush=True)


def _report(
    exported: Exported, variant: str, found: Tallies, start: float, server: ServerProcess
) -> None:
    line = _line(exported.model.name, variant, found, time.monotonic() - start)
    print(line + "\n    THE SERVER ENDED" * (not _lives(server)), flush=True)


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
