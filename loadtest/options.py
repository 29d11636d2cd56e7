"""Options shared by several subcommands. Heavy modules are imported only when values are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from colcast.cli.options import MILLISECONDS, Number, Parsed
from colcast.client.cli import together

_Command = TypeVar("_Command", bound=Callable[..., Any])
# Adds an option to a section of the help (colcast.cli.options.section).
_Option = Callable[..., Any]


def parsed(module: str, function: str) -> Parsed:
    """A value that a function of a module in this package reads."""

    def read(text: str) -> Any:
        return getattr(import_module(f"colcast.loadtest.{module}"), function)(text)

    return Parsed(read)


FORMAT = parsed("send.formats", "parse_format")
FORMATS = parsed("send.formats", "parse_formats")
SIZES = parsed("send.sizes", "parse_sizes")
TARGET = parsed("measure.series", "parse_target")


def traffic_options(option: _Option, sizes: str = "200") -> Callable[[_Command], _Command]:
    """--traffic, and the sizes and seed of the traffic; `traffic.load` reads them."""
    return together(
        option(
            "--traffic",
            default="generated",
            metavar="SOURCE",
            help="generated (from the signature), zoo:NAME, examples:FILE or requests:FILE"
            " (TFRecord files of tf.Example, PredictRequest or PredictionLog; - is standard"
            " input).",
        ),
        option(
            "--sizes",
            type=SIZES,
            default=sizes,
            metavar="SIZES",
            help="Candidates per request, unless recorded: 500, 20,100,500,"
            " lognormal:MEDIAN:SIGMA, pareto:SMALLEST:ALPHA:LARGEST or file:PATH.",
        ),
        option(
            "--distinct",
            type=click.IntRange(min=1),
            default=50,
            metavar="N",
            help="Number of different requests.",
        ),
        option(
            "--request-id",
            default="request_id",
            metavar="FEATURE",
            help="The feature that identifies the requests in examples:FILE.",
        ),
        option(
            "--user-features",
            several=True,
            metavar="PATTERN...",
            help="The user's features in generated traffic, such as 'user_*'.",
        ),
        option(
            "--ids",
            type=click.IntRange(min=1),
            default=100_000,
            metavar="N",
            help="Generated integers are below this: a model may refuse ids that its tables do not"
            " have.",
        ),
        option(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="The same seed makes the same requests in the same order.",
        ),
    )


_SHARED: dict[str, dict[str, Any]] = {
    "--timeout": {
        "type": Number(min=0, min_open=True),
        "default": 10.0,
        "metavar": "S",
        "help": "Deadline of a call, in seconds.",
    },
    "--max-minutes": {
        "type": Number(min=0, min_open=True),
        "metavar": "M",
        "help": "End a search after about this many minutes, with the best result so far.",
    },
    "--sla-p95": {
        "type": MILLISECONDS,
        "metavar": "TIME",
        "help": "The largest 95th percentile of latency, such as 25ms.",
    },
    "--sla-p99": {
        "type": MILLISECONDS,
        "metavar": "TIME",
        "help": "The largest 99th percentile of latency, such as 60ms.",
    },
}


def shared(option: _Option, *names: str) -> Callable[[_Command], _Command]:
    """Options of these names."""
    return together(*(option(name, **_SHARED[name]) for name in names))


def output_options(
    option: _Option, folder: str, files: str, printed: str
) -> Callable[[_Command], _Command]:
    """--output, for the folder with `files`, and --json, which prints `printed`."""
    path = click.Path(path_type=Path)
    told = f"Print {printed}, and everything else on standard error."
    return together(
        option("--output", type=path, default=folder, metavar="DIR", help=f"Folder for {files}."),
        option("--json", is_flag=True, help=told),
    )


@contextmanager
def report_failures() -> Iterator[None]:
    """Makes the block interruptible, and turns expected errors into the command's messages."""
    from colcast.client import ColcastError
    from colcast.loadtest.measure.budget import interruptible

    try:
        with interruptible():
            yield
    except (RuntimeError, LookupError, OSError, ColcastError) as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
