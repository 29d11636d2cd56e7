"""`colcast inspect`: shows the report of a past export, or what an export would do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from colcast.cli.console import report_console
from colcast.cli.options import Command
from colcast.export.cli import (
    domain_option,
    json_option,
    op_library,
    print_json,
    signature_option,
    silence_tensorflow,
    user_features_option,
)


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@signature_option("A signature that the export would convert")
@op_library
@json_option
@user_features_option("For a model not exported yet: the user's features")
@domain_option("For a model not exported yet: features of another domain")
def command(
    folder: Path,
    signatures: Sequence[str],
    op_library: Sequence[Path],
    user_features: Sequence[str],
    domains: Mapping[str, Sequence[str]],
    json: bool,
) -> int:
    """Shows the report that `colcast export` recorded in a SavedModel.

    For a model that has not been exported, it shows what an export would do. DIR holds
    saved_model.pb, or versions; the highest version is shown. No file is written. The exit code is
    1 if there is no SavedModel, or if an export would refuse it.
    """
    silence_tensorflow()
    from colcast.export import ExportError, load_op_libraries
    from colcast.export.report._recorded import print_record, read_record

    try:
        load_op_libraries(op_library)
        folder = _model_folder(folder)
        record = read_record(folder)
        if record is None:
            return _print_plan(folder, signatures, user_features, domains, json)
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if json:
        record.pop("files", None)
        print_json({"folder": str(folder), "exported": True, **record})
        return 0
    console = report_console()
    print_record(console, record)
    took = f"{folder}: exported in {record['seconds']:.1f} s"
    console.print(took, highlight=False, markup=False)
    return 0


def _model_folder(folder: Path) -> Path:
    """The folder itself or its highest version; ExportError if there is no SavedModel."""
    from colcast.export.convert._folder import GRAPH_FILE, check_graph_file, versions

    if folder.is_dir() and not (folder / GRAPH_FILE).exists() and (found := versions(folder)):
        return found[-1]
    check_graph_file(folder)
    return folder


def _print_plan(
    folder: Path,
    signatures: Sequence[str],
    user_features: Sequence[str],
    domains: Mapping[str, Sequence[str]],
    json: bool,
) -> int:
    """Prints what an export would do, or why it would refuse; returns the exit code."""
    from colcast.export import ExportError
    from colcast.export._plan import plan_export

    plain = {"folder": str(folder), "exported": False}
    console = report_console()
    try:
        plan = plan_export(folder, signatures, user_features, domains)
    except ExportError as refusal:
        if json:
            print_json({**plain, "refused": str(refusal)})
        else:
            console.print(
                f"an export would refuse {folder}: {refusal}", highlight=False, markup=False
            )
        return 1
    if json:
        print_json({**plain, **plan.to_json()})
    else:
        plan.print(console)
    return 0
