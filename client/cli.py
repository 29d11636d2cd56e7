"""`colcast rank`: ranks items from a file for one user."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, get_args

import click
from colcast.client._client import RankingClient
from colcast.client._errors import ColcastError, InputError
from colcast.client._files import ITEM_FILES, STANDARD_INPUT, read_items, read_user
from colcast.client._settings import ChannelOptions, NanPolicy, Policies, Target, Tls
from colcast.client.columns._schema import Feature, ModelSchema
from colcast.client.request._outputs import Ranking

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_SHOWN_COLUMNS = 4
_WIDEST_CELL = 40


def tls_options(option: Callable[..., Any] = click.option) -> Callable[[_Decorated], _Decorated]:
    """The TLS options of a command that calls a server; `channel_options` reads them.

    Args:
        option: declares an option, with the arguments of `click.option`.
    """
    return together(
        option("--tls", is_flag=True, help="Use TLS and trust the system's authorities."),
        option("--tls-root-certificates", metavar="PEM", help="The authorities to trust."),
        option("--tls-private-key", metavar="PEM", help="The client's key, for mutual TLS."),
        option(
            "--tls-certificate-chain",
            metavar="PEM",
            help="The client's certificate, for mutual TLS.",
        ),
        option(
            "--tls-server-name",
            metavar="NAME",
            help="The name in the server's certificate, if it differs from the address.",
        ),
    )


def together(*options: Callable[[Any], Any]) -> Callable[[_Decorated], _Decorated]:
    """A decorator that declares the options in this order."""

    def decorate(function: _Decorated) -> _Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def channel_options(given: Mapping[str, Any]) -> ChannelOptions:
    """The channel options given by `tls_options`, with TLS if any of them is set."""
    names = ("root_certificates", "private_key", "certificate_chain", "server_name")
    settings = {name: given[f"tls_{name}"] for name in names}
    return ChannelOptions(tls=Tls(**settings) if given["tls"] or any(settings.values()) else None)


class _ItemsFile(click.Path):
    """An items file, recognized by its ending, or "-"."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = super().convert(value, param, ctx)
        if path != STANDARD_INPUT and Path(str(path)).suffix not in ITEM_FILES:
            self.fail(f"{path!s}: expected a file that ends in {', '.join(ITEM_FILES)}", param, ctx)
        return path


class _TargetName(click.Choice[str]):
    """A target, spelled as in the library: with underscores, although options have hyphens."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return str(choice).replace("-", "_")


@click.command(epilog="colcast rank --server localhost:8500 --model movies --items items.csv")
@click.option(
    "--server",
    required=True,
    metavar="HOST:PORT[,...]",
    help="A server's gRPC address, several of them, or a DNS name for all of them.",
)
@click.option("--model", required=True, metavar="NAME", help="The served model.")
@click.option(
    "--user",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON object of the user's features; - is standard input. Without it, the items have all"
    " features.",
)
@click.option(
    "--items",
    type=_ItemsFile(path_type=Path),
    required=True,
    metavar="FILE",
    help=".jsonl, .json, .csv or .parquet, one item per row; - is JSON on standard input.",
)
@click.option(
    "--item-key",
    metavar="NAME",
    help="The column with the items' keys in the server's item table; other columns override the"
    " table's features.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    metavar="K",
    help="Number of items to print.",
)
@click.option("--json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--show", metavar="A,B", help="Item columns to print. [default: the first four]")
@click.option(
    "--target",
    type=_TargetName(get_args(Target)),
    default="auto",
    help="How the request is written; auto is the smallest form that the server accepts.",
)
@click.option("--signature", metavar="NAME", help="Signature to call instead of the target's.")
@click.option(
    "--version", type=int, metavar="N", help="Model version. [default: the server's choice]"
)
@click.option(
    "--score-output",
    metavar="NAME",
    help="The output to rank by, if the model has several, or a column of it: 'NAME[:, 1]'.",
)
@click.option(
    "--nan",
    type=click.Choice(get_args(NanPolicy)),
    default="error",
    help="NaN in a float feature: 'send' it to a model that accepts it, such as a decision forest.",
)
@click.option(
    "--timeout-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    metavar="S",
    help="Deadline of the call.",
)
@click.option(
    "--list-separator", default="|", metavar="TEXT", help="Separator of the values in a CSV cell."
)
@tls_options()
def command(**given: Any) -> None:
    """Ranks the items of a file for one user."""
    options = SimpleNamespace(**given)
    logging.basicConfig(format="colcast rank: %(message)s")
    if options.user == options.items == STANDARD_INPUT:
        raise click.UsageError("only one of --user and --items can be standard input (-)")
    try:
        with RankingClient(
            options.server,
            options.model,
            target=options.target,
            signature=options.signature,
            version=options.version,
            score_output=options.score_output,
            timeout_seconds=options.timeout_seconds,
            policies=Policies(nan=options.nan),
            channel=channel_options(given),
        ) as client:
            features = _features(client.schema(), options.signature)
            items = read_items(options.items, features, options.list_separator)
            user = None if options.user is None else read_user(options.user)
            _check_items(options, items)
            keys = _keys(options, items, features)
            sent = [{n: v for n, v in row.items() if n not in keys} for row in items]
            ranking = client.rank(user, sent if any(sent) else (), item_keys=keys or None)
            click.echo((_json if options.json else _table)(options, ranking, items))
    except ColcastError as error:
        raise click.ClickException(str(error)) from error


def _features(schema: ModelSchema, signature: str | None) -> Mapping[str, Feature]:
    """All features of the model's signatures.

    If signatures declare a feature differently, the declaration of `signature` is used, or that of
    the columnar signature if `signature` is None.
    """
    usual = schema.signature(signature) if signature else schema.columnar_signature()
    found: dict[str, Feature] = {}
    for each in (*schema.signatures.values(), usual):
        if each is not None and (not each.takes_examples or schema.takes_text(each)):
            found.update(each.features)
    return found


def _keys(
    options: SimpleNamespace, items: Sequence[Mapping[str, Any]], features: Mapping[str, Feature]
) -> dict[str, list[Any]]:
    """The items' keys by name; keys from a CSV file are integers if all are written that way."""
    name = options.item_key
    if name is None:
        return {}
    missing = next((row for row, item in enumerate(items) if item.get(name) in (None, "")), None)
    if missing is not None:
        raise InputError("no key, expected one in every row", feature=name, row=missing)
    keys = [item[name] for item in items]
    if options.items.suffix == ".csv" and name not in features and all(map(_is_integer, keys)):
        keys = list(map(int, keys))
    return {name: keys}


def _is_integer(key: Any) -> bool:
    return isinstance(key, str) and key.removeprefix("-").isdecimal() and str(int(key)) == key


def _json(options: SimpleNamespace, ranking: Ranking, items: Sequence[Any]) -> str:
    top = [
        {"rank": rank, "row": place.row, "score": place.score, "item": items[place.row]}
        for rank, place in enumerate(ranking.top(options.top), 1)
    ]
    found = {
        "model": options.model,
        "version": ranking.model_version,
        "candidates": len(items),
        "top": top,
    }
    return json.dumps(found, indent=2, ensure_ascii=False, default=str)


def _table(options: SimpleNamespace, ranking: Ranking, items: Sequence[Any]) -> str:
    names = _shown_columns(options, items)
    rows = [["rank", "row", "score", *names]]
    for rank, place in enumerate(ranking.top(options.top), 1):
        cells = [_cell(items[place.row].get(name, "")) for name in names]
        rows.append([str(rank), str(place.row), f"{place.score:.6f}", *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths, range(len(row)))).rstrip() for row in rows]
    version = "" if ranking.model_version is None else f" version {ranking.model_version}"
    count = "1 candidate" if len(items) == 1 else f"{len(items)} candidates"
    return "\n".join([f"{count}, {options.model}{version}", *lines])


def _shown_columns(options: SimpleNamespace, items: Sequence[Any]) -> list[str]:
    present = list(items[0])
    if not options.show:
        return present[:_SHOWN_COLUMNS]
    names: list[str] = options.show.split(",")
    return names


def _check_items(options: SimpleNamespace, items: Sequence[Any]) -> None:
    """Raises an error if there are no items, or if --show names a column that no item has."""
    if not items:
        where = "standard input" if options.items == STANDARD_INPUT else options.items
        raise InputError(f"{where}: no items, expected one per row")
    for name in (options.show or "").split(","):
        if name and not any(name in item for item in items):
            there = ", ".join(items[0])
            raise click.UsageError(f"--show: no column {name!r}; the items have {there}")


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    # Escapes characters that are not printable, such as line ends.
    text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 3] + "..."


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column < 3 else cell.ljust(width)
