"""Prints how answers differ: `python -m tests.independence --answers 2000 --models softmax`."""

import argparse
import sys
import tempfile
from pathlib import Path

import tensorflow as tf

from ..models import RANKING
from .cases import cases_of
from .exported import Exported
from .hammer import TOLERANCE, VARIANTS, Tallies, hammer, serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000, help="answers per model and variant")
    parser.add_argument("--models", nargs="+", default=list(RANKING), choices=RANKING)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--seed", type=int, default=0, help="draws other requests")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="fails if an answer differs by more"
    )
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as in the server, for equal bits
    largest = 0.0
    for name in args.models:
        with tempfile.TemporaryDirectory() as scratch:
            for weights, exported in _with_other_weights(name, Path(scratch)):
                cases = cases_of(exported, seed=args.seed)
                for variant in args.variants:
                    with serve([exported], variant, Path(scratch, "config")) as server:
                        found = hammer(server, name, cases, args.answers, args.seed)
                    largest = max(largest, *(tally.largest for tally in found.values()))
                    print(f"{name} | {weights} | {variant} | {_cells(found)}", flush=True)
    print(f"largest difference {largest:.1e}")
    sys.exit(largest > args.tolerance)


def _with_other_weights(name: str, scratch: Path) -> list[tuple[str, Exported]]:
    """The exported model, and the same export with variables of a later training."""
    exported = Exported(RANKING[name], scratch)
    retrained = exported.retrained(scratch / "retrained")
    (scratch / "retrained" / "2").rename(retrained.base_path / "2")
    return [("own weights", exported), ("other weights", retrained)]


def _cells(found: Tallies) -> str:
    cells = []
    for kind, tally in sorted(found.items()):
        cell = f"{kind} {tally.wrong}/{tally.answers} wrong, {tally.inexact} inexact"
        refused = [f"{times} times {said[:160]}" for said, times in tally.refused.most_common(2)]
        cells.append("; ".join([cell, *refused, *filter(None, [tally.shown])]))
    return " | ".join(cells)


if __name__ == "__main__":
    main()
