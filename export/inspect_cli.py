"""`colcast inspect`: what an export recorded in a SavedModel, or what one would do to it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from colcast.cli.console import report_console
from colcast.export.cli import add_op_library, silence_tensorflow

if TYPE_CHECKING:
    from rich.console import Console


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="colcast inspect",
        description="Shows what `colcast export` recorded in the SavedModel that it wrote; of a"
        " model not exported yet, what an export would do. Writes nothing.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="folder with saved_model.pb, or one with versions, of which the highest is shown",
    )
    parser.add_argument(
        "--signature",
        action="append",
        metavar="NAME[=NEW]",
        help="a signature that the export would convert, repeatable (serving_default)",
    )
    parser.add_argument(
        "--user-features",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="of a model not exported yet: features that would be the user's, such as 'user_*'",
    )
    add_op_library(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `colcast inspect` and returns its exit code.

    0: exported, or an export would work. 1: no SavedModel, or an export would refuse it. 2: wrong
    command line.
    """
    args = _parser().parse_args(argv)
    silence_tensorflow()
    from colcast.export import ExportError, load_op_libraries
    from colcast.export._recorded import read_report

    console = report_console()
    try:
        load_op_libraries(args.op_library)
        folder = _model_folder(args.folder)
        recorded = read_report(folder)
        if recorded is None:
            signatures = args.signature or ["serving_default"]
            return _print_plan(console, folder, signatures, args.user_features)
    except (ExportError, OSError) as error:
        print(f"colcast inspect: {error}", file=sys.stderr)
        return 1
    recorded.print_findings(console)
    console.print(f"{folder}: exported in {recorded.seconds:.1f} s", highlight=False, markup=False)
    return 0


def _model_folder(folder: Path) -> Path:
    """The folder itself, or its highest version; ExportError if there is no SavedModel."""
    from colcast.export._folder import GRAPH_FILE, check_graph_file, versions

    if folder.is_dir() and not (folder / GRAPH_FILE).exists() and (found := versions(folder)):
        return found[-1]
    check_graph_file(folder)
    return folder


def _print_plan(
    console: "Console", folder: Path, signatures: Sequence[str], user_features: Sequence[str]
) -> int:
    """Prints what an export would do, or why it would refuse; returns the exit code."""
    from colcast.export import ExportError
    from colcast.export._plan import plan_export

    try:
        plan = plan_export(folder, signatures, user_features)
    except ExportError as refusal:
        console.print(f"an export would refuse {folder}: {refusal}", highlight=False, markup=False)
        return 1
    plan.print(console)
    return 0
