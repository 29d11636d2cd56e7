"""`colcast export`: adds columnar signatures to a SavedModel."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from colcast.cli.console import report_console


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="colcast export",
        description="Writes a copy of a SavedModel with a `columnar` signature, which takes a"
        " tensor per feature where another signature parses tf.Example.",
    )
    parser.add_argument(
        "--saved-model", type=Path, required=True, metavar="IN", help="folder with saved_model.pb"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="OUT", help="folder to write; must not exist"
    )
    parser.add_argument(
        "--signature",
        action="append",
        metavar="NAME[=NEW]",
        help="a signature to convert, repeatable (serving_default); the first becomes `columnar`,"
        " another one `columnar_NAME`, unless NEW is given",
    )
    parser.add_argument(
        "--user-features",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="features that are the same on every row of a request, such as 'user_*'; `auto`:"
        " those that are in every request of --examples",
    )
    parser.add_argument(
        "--late",
        action="store_true",
        help="also add `columnar_late`, which computes the user's part once per request,"
        " `columnar_exact`, which does so as far as scores stay equal to the last bit, and the"
        " parts `columnar_user`, `columnar_item` and `columnar_pair`, whose results a server keeps",
    )
    parser.add_argument(
        "--context-features",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="with --late: features of neither user nor item, such as position or distance",
    )
    parser.add_argument(
        "--exact",
        choices=("auto", "always"),
        default="auto",
        help="with --late: write `columnar_exact` only where it was measured to be faster"
        " (%(default)s), or always",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest relative difference of the late signature's outputs (%(default)s)",
    )
    parser.add_argument(
        "--make-default",
        nargs="?",
        const="columnar",
        metavar="NEW",
        help="make a new signature serving_default (%(const)s); the present one is kept as"
        " serving_examples",
    )
    parser.add_argument(
        "--examples",
        type=Path,
        metavar="FILE",
        help="TFRecord of recorded tf.Examples, PredictRequests or PredictionLogs to compare"
        " scores on, beside generated rows",
    )
    parser.add_argument(
        "--warmup",
        type=int,
        nargs="+",
        default=[],
        metavar="ROWS",
        help="write warm-up requests of that many rows",
    )
    add_op_library(parser)
    return parser


def add_op_library(parser: argparse.ArgumentParser) -> None:
    """Adds --op-library, for every command that loads the user's model."""
    parser.add_argument(
        "--op-library",
        type=Path,
        action="append",
        default=[],
        metavar="SO",
        help="library of custom ops that the model has",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `colcast export` and returns its exit code: 0, 1 refused, 2 wrong command line."""
    args = _parser().parse_args(argv)
    silence_tensorflow()
    from colcast.export import ExportError, export_saved_model, load_op_libraries
    from rich.console import Console

    console = report_console()
    try:
        with Console(stderr=True).status(f"converting {args.saved_model}"):
            load_op_libraries(args.op_library)
            report = export_saved_model(
                args.saved_model,
                args.output,
                signatures=args.signature or ["serving_default"],
                user_features=args.user_features,
                late=args.late,
                context_features=args.context_features,
                exact=args.exact,
                default=args.make_default,
                examples=args.examples,
                warmup=args.warmup,
                tolerance=args.tolerance,
            )
    except (ExportError, OSError) as error:
        print(f"colcast export: {error}", file=sys.stderr)
        return 1
    report.print(console)
    return 0


def silence_tensorflow() -> None:
    """Keeps TensorFlow's notes about itself off the console; its errors still come as errors."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow as tf

        tf.get_logger().setLevel("ERROR")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.run(tf.constant(0))  # the first run of a process notes that it has no MLIR
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
