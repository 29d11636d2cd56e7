"""`colcast encode` and `colcast rerank`: a file's lines as vectors, or ranked for a query."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
import numpy as np
from colcast.client._errors import ColcastError
from colcast.client._text import Pooling, TextClient
from colcast.client.cli import channel_options, tls_options, together

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def _text_options(*, model: str) -> Callable[[_Decorated], _Decorated]:
    """The options for server and model; `model` is the default model."""
    return together(
        click.option("--server", required=True, metavar="HOST:PORT[,...]", help="gRPC address."),
        click.option("--model", default=model, metavar="NAME", help="The served model."),
        click.option("--version", type=int, metavar="N", help="Model version."),
        click.option(
            "--timeout-seconds",
            type=click.FloatRange(min=0, min_open=True),
            default=30.0,
            metavar="S",
            help="Deadline of each request.",
        ),
        tls_options(),
    )


@click.command(epilog="colcast encode news.txt --server localhost:8500 --output news.npy")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@_text_options(model="encoder")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="NPY",
    help="Write the vectors here, float32 [lines, width]. [default: JSON, one line each]",
)
@click.option(
    "--pooling",
    type=click.Choice(get_args(Pooling)),
    default="mean",
    help="How the tokens' vectors are combined.",
)
@click.option(
    "--max-seq-len", type=click.IntRange(2, 512), help="Truncate lines to this number of tokens."
)
def encode(file: Path, output: Path | None, **given: Any) -> None:
    """Writes the vector of each line of FILE; - is standard input."""
    texts = _lines(file)
    try:
        if output is not None:
            output.open("ab").close()  # fail before encoding if the file is not writable
        with _client(given) as client:
            wanted = {name: given[name] for name in ("pooling", "max_seq_len")}
            with _Bar(len(texts)) as bar:
                vectors = client.encode(texts, progress=bar, **wanted)
        if output is not None:
            with output.open("wb") as written:
                np.save(written, vectors)
            return
    except (ColcastError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for vector in vectors.tolist():
        click.echo(json.dumps(vector))


@click.command(epilog='colcast rerank titles.txt --query "cocoa prices" --server localhost:8500')
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--query", required=True, metavar="TEXT", help="Rank the lines for this query.")
@_text_options(model="reranker")
@click.option(
    "--top", type=click.IntRange(min=1), default=10, metavar="K", help="Number of lines to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one title per line.")
def rerank(file: Path, query: str, top: int, as_json: bool, **given: Any) -> None:
    """Ranks the lines of FILE for a query; - is standard input."""
    titles = _lines(file)
    try:
        with _client(given) as client:
            best = client.rank(query, titles).top(top)
    except ColcastError as error:
        raise click.ClickException(str(error)) from error
    for row, score in best:
        entry = {"title": titles[row], "line": row + 1, "score": score}
        click.echo(json.dumps(entry) if as_json else f"{score:8.3f}  {titles[row]}")


def _lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file, or of standard input; an empty line is an empty text.

    Raises:
        click.ClickException: the file cannot be read, or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    return text.removesuffix("\n").split("\n") if text else []


def _client(given: Mapping[str, Any]) -> TextClient:
    settings = {name: given[name] for name in ("version", "timeout_seconds")}
    channel = channel_options(given)
    return TextClient(given["server"], given["model"], channel=channel, **settings)


class _Bar:
    """A progress bar of answered requests, on a terminal's standard error."""

    def __init__(self, texts: int) -> None:
        self._label = f"{texts:,} texts"
        self._bar: Any = None

    def __enter__(self) -> "_Bar":
        return self

    def __call__(self, answered: int, all_of_them: int) -> None:
        if self._bar is None:
            self._bar = click.progressbar(length=all_of_them, label=self._label, file=sys.stderr)
        self._bar.update(answered - self._bar.pos)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()
