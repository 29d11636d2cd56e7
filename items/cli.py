"""`colcast items` and `colcast tables`: for item tables, and for a model's embedding tables."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from colcast.cli.console import counted, report_console, showing_progress

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILES = ".parquet, .csv, .tfrecord (tf.Examples), .npz, or a folder"
_SOURCE_HELP = f"The items, one per row: {_FILES}."


def _source(help_text: str, *, required: bool = True) -> Callable[[Any], Any]:
    """The option that names the source of rows."""
    path = click.Path(exists=True, path_type=Path)
    return click.option(
        "--from", "source", type=path, required=required, metavar="PATH", help=help_text
    )


_separator = click.option(
    "--list-separator",
    default="|",
    metavar="TEXT",
    help="Separator of the values of lists and vectors in a CSV cell.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


@click.group(subcommand_metavar="COMMAND ...")
def command() -> None:
    """Builds item tables, in which a server looks up features by key (docs/items.md)."""


@command.command()
@click.option(
    "--model",
    type=_FOLDER,
    required=True,
    metavar="DIR",
    help="A model that colcast export wrote: the SavedModel, or its base path.",
)
@_source(_SOURCE_HELP)
@click.option("--key", required=True, metavar="NAME", help="The column that identifies an item.")
@click.option(
    "--output",
    type=_FOLDER,
    required=True,
    metavar="DIR",
    help="The table's folder, with a subfolder per version.",
)
@click.option("--domain", default="item", metavar="NAME", help="The domain of the features.")
@click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of the version. [default: one more than the newest]",
)
@_separator
def build(source: Path, **given: Any) -> None:
    """Builds a new version of a table."""
    from colcast.items import ItemTable, build_table

    with _telling("build") as progress:
        folder = build_table(given.pop("model"), source, progress=progress, **given)
        table = ItemTable(folder.parent, int(folder.name))
        rows = len(table)
    absent = ", ".join(table.absent)
    defaults = f"; the model's defaults for {absent}" if absent else ""
    click.echo(f"{folder}: {counted(rows, 'item')}{defaults}")


@command.command()
@click.option("--table", type=_FOLDER, required=True, metavar="DIR", help="The table's folder.")
@_source(f"{_SOURCE_HELP} Each replaces the item's whole row.", required=False)
@click.option(
    "--delete",
    "deleted",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the keys of items to delete, one per line.",
)
@_separator
def delta(table: Path, source: Path | None, deleted: Path | None, list_separator: str) -> None:
    """Adds, replaces and deletes items of a table's newest version while it is served."""
    from colcast.items import ItemTable, build_delta

    with _telling("delta") as progress:
        lines = [] if deleted is None else deleted.read_text().splitlines()
        dtype = ItemTable(table).schema.key_dtype
        keys = [_key(line.strip(), dtype) for line in lines if line.strip()]
        file = build_delta(
            table, source or (), delete=keys, list_separator=list_separator, progress=progress
        )
    click.echo(f"{file}: written")


@command.command()
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.argument("key", required=False, metavar="[KEY]")
@_as_json
def inspect(folder: Path, key: str | None, as_json: bool) -> None:
    """Shows a table's contents, or the current row of KEY, with deltas applied.

    Without KEY, all files are read and their checksums verified.
    """
    from colcast.items import ItemTable
    from colcast.items._inspect import facts, row_of

    with _errors():
        table = ItemTable(folder)
        if key is None:
            found = facts(table)
            table.verify()
        else:
            found = row_of(table, _key(key, table.schema.key_dtype))
    _show(found, as_json)


@click.group(subcommand_metavar="COMMAND ...")
def tables() -> None:
    """Changes rows of a model's embedding tables while it is served (docs/tables.md)."""


_model = click.argument("model", type=_FOLDER, metavar="MODEL")
_version = click.option(
    "--version",
    type=click.IntRange(min=0),
    metavar="N",
    help="The version of MODEL. [default: the newest]",
)


@tables.command("delta")
@_model
@click.option("--table", required=True, metavar="NAME", help="The variable's name.")
@_source(f"Columns id and vector: {_FILES}.")
@_version
def table_delta(model: Path, source: Path, **given: Any) -> None:
    """Replaces rows of a table of MODEL, a SavedModel or its base path."""
    from colcast.items import build_row_delta

    with _telling("delta") as progress:
        file = build_row_delta(model, source, progress=progress, **given)
    click.echo(f"{file}: written")


@tables.command("inspect")
@_model
@_version
@click.option(
    "--server",
    metavar="HOST:PORT",
    help="A server's REST address: also show what it has mapped and applied.",
)
@_as_json
def inspect_tables(model: Path, version: int | None, server: str | None, as_json: bool) -> None:
    """Shows the tables of MODEL and their deltas, whose checksums are verified.

    With --server, also shows which tables it has mapped, why others are not mapped, and which
    deltas it has applied.
    """
    from colcast.items._inspect import OFFLINE, tables_of

    with _errors():
        found = tables_of(model, version, server)
    _show(found, as_json)
    if server is None and not as_json:
        click.echo(OFFLINE)


def _show(found: dict[str, Any], as_json: bool) -> None:
    from colcast.items._inspect import show

    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        show(report_console(), found)


@contextmanager
def _errors() -> Iterator[None]:
    """Turns errors that users can fix into one-line messages."""
    from colcast.client import InputError
    from colcast.items import ItemTableError

    try:
        yield
    except (InputError, ItemTableError, OSError) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def _telling(name: str) -> Iterator[Callable[[int], None]]:
    """Yields a function that shows the number of rows so far."""
    with _errors(), showing_progress(f"colcast items {name}") as show:
        yield lambda rows: show(f"{rows:,} rows")


def _key(text: str, dtype: str) -> int | str:
    if dtype == "string":
        return text
    try:
        return int(text)
    except ValueError:
        raise click.ClickException(f"key {text!r}: the table's keys are integers") from None
