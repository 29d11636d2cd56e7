"""`colcast export`: adds columnar signatures to a SavedModel."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="colcast export",
        description="Writes a copy of a SavedModel with a `columnar` signature, which takes a"
        " tensor a feature where another signature parses tf.Example.",
    )
    parser.add_argument(
        "--saved-model", type=Path, required=True, metavar="IN", help="folder with saved_model.pb"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="OUT", help="folder to write; must not exist"
    )
    parser.add_argument(
        "--signature", default="serving_default", help="the one to convert (%(default)s)"
    )
    parser.add_argument(
        "--user-features",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="features that are the same on every row of a request, such as 'user_*'",
    )
    parser.add_argument(
        "--late",
        action="store_true",
        help="also add `columnar_late`, which computes the user's part once a request",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest relative difference of the late signature's outputs (%(default)s)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `colcast export` and returns its exit code: 0, 1 refused, 2 wrong command line."""
    args = _parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

    from colcast.export import ExportError, export_saved_model
    from rich.console import Console

    console = Console()
    try:
        with Console(stderr=True).status(f"converting {args.saved_model}"):
            report = export_saved_model(
                args.saved_model,
                args.output,
                signature=args.signature,
                user_features=args.user_features,
                late=args.late,
                tolerance=args.tolerance,
            )
    except (ExportError, OSError) as error:
        print(f"colcast export: {error}", file=sys.stderr)
        return 1
    report.print(console)
    return 0
