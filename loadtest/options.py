"""Options shared by several subcommands. Heavy modules are imported only when values are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from colcast.cli.options import MILLISECONDS, Number, Parsed
from colcast.client.cli import together

_Command = TypeVar("_Command", bound=Callable[..., Any])
# Adds an option to a section of the help (colcast.cli.options.section).
_Option = Callable[..., Any]


def _formats(text: str) -> list[str]:
    from colcast.loadtest.send.formats import parse_formats

    return parse_formats(text)


def _format(text: str) -> str:
    name, *others = _formats(text)
    if others:
        raise ValueError(f"{text!r}: expected one format")
    return name


def _sizes(text: str) -> Any:
    from colcast.loadtest.send.sizes import parse_sizes

    return parse_sizes(text)


def _target(text: str) -> Any:
    from colcast.loadtest.measure.series import parse_target

    return parse_target(text)


FORMAT = Parsed(_format)
FORMATS = Parsed(_formats)
SIZES = Parsed(_sizes)
TARGET = Parsed(_target)


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


def call_timeout(option: _Option) -> Callable[[_Command], _Command]:
    return together(
        option(
            "--timeout",
            type=Number(min=0, min_open=True),
            default=10.0,
            metavar="S",
            help="Deadline of a call, in seconds.",
        )
    )


def max_minutes(option: _Option) -> Callable[[_Command], _Command]:
    return together(
        option(
            "--max-minutes",
            type=Number(min=0, min_open=True),
            metavar="M",
            help="End a search after about this many minutes, with the best result so far.",
        )
    )


def latency_targets(option: _Option) -> Callable[[_Command], _Command]:
    """The options --sla-p95 and --sla-p99."""
    helps = {
        "--sla-p95": "The largest 95th percentile of latency, such as 25ms.",
        "--sla-p99": "The largest 99th percentile of latency, such as 60ms.",
    }
    declared = [option(name, type=MILLISECONDS, metavar="TIME", help=helps[name]) for name in helps]
    return together(*declared)


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
