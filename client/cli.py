"""`colcast rank`: ranks the items of a file for the user of another."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from colcast.client._channel import ChannelOptions, Tls
from colcast.client._client import RankingClient
from colcast.client._errors import ColcastError
from colcast.client._files import ITEM_FILES, STANDARD_INPUT, read_items, read_user
from colcast.client._outputs import Ranking
from colcast.client._schema import Feature, ModelSchema
from colcast.client._settings import Target

_SHOWN_COLUMNS = 4
_WIDEST_CELL = 40


def main(argv: Sequence[str]) -> int:
    """Runs the subcommand; returns 0, or 1 with one line on stderr if it failed.

    Ends with 2 where the command line is wrong.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.user == options.items == STANDARD_INPUT:
        parser.error("only one of --user and --items can be standard input (-)")
    try:
        with RankingClient(
            options.server,
            options.model,
            target=options.target,
            signature=options.signature,
            version=options.version,
            score_output=options.score_output,
            timeout_seconds=options.timeout_seconds,
            channel=ChannelOptions(tls=_tls(options)),
        ) as client:
            features = _features(client.schema())
            items = read_items(options.items, features, options.list_separator)
            user = None if options.user is None else read_user(options.user)
            if problem := _unknown_column(options, items):
                parser.error(problem)
            ranking = client.rank(user, items)
            print(
                _json(options, ranking, items) if options.json else _table(options, ranking, items)
            )
    except ColcastError as error:
        print(f"colcast rank: {error}", file=sys.stderr)
        return 1
    return 0


# Implementation details follow.


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="colcast rank", description="Rank the items of a file for one user."
    )
    parser.add_argument("--server", required=True, metavar="HOST:PORT[,HOST:PORT...]")
    parser.add_argument("--model", required=True, help="the served model's name")
    parser.add_argument(
        "--user", type=_file, help="JSON object, - for standard input; without it items have it all"
    )
    parser.add_argument(
        "--items",
        type=_items_file,
        required=True,
        help=".jsonl, .json, .csv or .parquet, one item per row; - for JSON on standard input",
    )
    parser.add_argument(
        "--top", type=_count, default=10, metavar="K", help="how many to print (default 10)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--show", help="item columns to print, separated by commas")
    parser.add_argument(
        "--target",
        choices=get_args(Target),
        default="auto",
        help="how the request is written (default auto: the smallest the server takes)",
    )
    parser.add_argument("--signature", help="call this one in place of the target's usual one")
    parser.add_argument("--version", type=int, help="model version (default: the server's choice)")
    parser.add_argument("--score_output", help="the output that ranks, if there are several")
    parser.add_argument(
        "--timeout_seconds", type=float, default=10.0, help="deadline of the call (default 10)"
    )
    parser.add_argument("--list_separator", default="|", help="in CSV cells (default |)")
    tls = parser.add_argument_group("TLS")
    tls.add_argument("--tls", action="store_true", help="with the system's authorities")
    tls.add_argument("--tls_root_certificates", metavar="PEM", help="the authorities to trust")
    tls.add_argument("--tls_private_key", metavar="PEM", help="our key, for mutual TLS")
    tls.add_argument("--tls_certificate_chain", metavar="PEM", help="our certificate")
    tls.add_argument("--tls_server_name", metavar="NAME", help="the name in the certificate")
    return parser


def _tls(options: argparse.Namespace) -> Tls | None:
    """TLS if any of its options is given."""
    names = ("root_certificates", "private_key", "certificate_chain", "server_name")
    given = {name: getattr(options, f"tls_{name}") for name in names}
    return Tls(**given) if options.tls or any(given.values()) else None


def _file(text: str) -> Path | str:
    return STANDARD_INPUT if text == STANDARD_INPUT else Path(text)


def _items_file(text: str) -> Path | str:
    path = _file(text)
    if isinstance(path, Path) and path.suffix not in ITEM_FILES:
        endings = ", ".join(ITEM_FILES)
        raise argparse.ArgumentTypeError(f"{path}: expected a file that ends in {endings}")
    return path


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def _features(schema: ModelSchema) -> Mapping[str, Feature]:
    """Every feature any signature of the model has."""
    found: dict[str, Feature] = {}
    for signature in schema.signatures.values():
        if not signature.takes_examples:
            found.update(signature.features)
    return found


def _json(options: argparse.Namespace, ranking: Ranking, items: Sequence[Any]) -> str:
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


def _table(options: argparse.Namespace, ranking: Ranking, items: Sequence[Any]) -> str:
    names = _shown_columns(options, items)
    rows = [["rank", "row", "score", *names]]
    for rank, place in enumerate(ranking.top(options.top), 1):
        cells = [_cell(items[place.row].get(name, "")) for name in names]
        rows.append([str(rank), str(place.row), f"{place.score:.6f}", *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths, range(len(row)))).rstrip() for row in rows]
    version = "" if ranking.model_version is None else f" version {ranking.model_version}"
    return "\n".join([f"{len(items)} candidates, {options.model}{version}", *lines])


def _shown_columns(options: argparse.Namespace, items: Sequence[Any]) -> list[str]:
    present = list(items[0])
    if not options.show:
        return present[:_SHOWN_COLUMNS]
    names: list[str] = options.show.split(",")
    return names


def _unknown_column(options: argparse.Namespace, items: Sequence[Any]) -> str | None:
    """What is wrong with --show; None if nothing is."""
    for name in (options.show or "").split(","):
        if name and not any(name in item for item in items):
            there = ", ".join(items[0]) if items else "none"
            return f"argument --show: no column {name!r}; there are {there}"
    return None


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 3] + "..."


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column < 3 else cell.ljust(width)
