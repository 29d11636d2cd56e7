"""The command line of `colcast loadtest`."""

import argparse
import re
from pathlib import Path
from typing import Any

from colcast.loadtest.formats import FORMATS
from colcast.loadtest.gate import Thresholds
from colcast.loadtest.search import Sla

_DESCRIPTION = """\
Sends the same ranking requests in several formats and compares what they cost: server CPU, bytes,
latency, throughput. A sample of the answers under load is checked against answers given before."""

_EXAMPLES = """\
examples:
  colcast loadtest --target 127.0.0.1:8500 --model movies --rate 200
  colcast loadtest --target stock=10.0.0.1:8500 --target colcast=10.0.0.2:8500 --model movies \\
      --formats example,late --traffic examples:log.tfrecord --find-max --sla-p95 25ms
  colcast loadtest --target 127.0.0.1:8500 --model movies --formats columnar \\
      --rate 200 --sla-p95 25ms --max-errors 0 --junit loadtest.xml"""


def parser() -> argparse.ArgumentParser:
    """All options, with their defaults."""
    top = argparse.ArgumentParser(
        prog="colcast loadtest",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _tested(top.add_argument_group("what is tested"))
    _traffic(top.add_argument_group("traffic"))
    _load(top.add_argument_group("load, one of"))
    _gate(top.add_argument_group("thresholds; a series that misses one makes the exit code 1"))
    _measuring(top.add_argument_group("measuring"))
    return top


def latency_target(args: argparse.Namespace) -> Sla | None:
    """The target of --find-max; None without it.

    Raises:
      ValueError: --find-max without a target or with two.
    """
    if not args.find_max:
        return None
    given = _slas(args)
    if len(given) != 1:
        raise ValueError("--find-max needs one target: --sla-p95 25ms or --sla-p99 60ms")
    return given[0]


def thresholds(args: argparse.Namespace) -> Thresholds:
    """What the run has to keep; a search has a target in place of latency thresholds."""
    return Thresholds(() if args.find_max else _slas(args), args.max_errors)


def _slas(args: argparse.Namespace) -> tuple[Sla, ...]:
    targets = ((95, args.sla_p95), (99, args.sla_p99))
    return tuple(Sla(percentile, value) for percentile, value in targets if value is not None)


def _tested(group: Any) -> None:
    _add(
        group, "--target", "[NAME=]HOST:PORT", None,
        "a server's gRPC address; give it again with other names to compare servers",
        action="append", required=True,
    )  # fmt: skip
    _add(group, "--model", "NAME", None, "the served model", required=True)
    _add(
        group, "--formats", "A,B", "example,repeated,columnar",
        f"of {', '.join(FORMATS)}; the others are compared with the first",
    )  # fmt: skip
    _add(
        group, "--pid", "PID", [],
        "the server's process, one per target; servers on this machine are found by their port",
        action="append", type=int,
    )  # fmt: skip
    _add(
        group, "--metrics", "URL", [],
        "the server's Prometheus page, one per target, if it runs on another machine",
        action="append",
    )  # fmt: skip


def _traffic(group: Any) -> None:
    _add(
        group, "--traffic", "SOURCE", "generated",
        "generated (from the signature), zoo:NAME, examples:FILE or requests:FILE (TFRecord files "
        "of tf.Example or of PredictRequest)",
    )  # fmt: skip
    _add(
        group, "--sizes", "SIZES", "200",
        "candidates per request, where they are not recorded: 500, 20,100,500, "
        "lognormal:MEDIAN:SIGMA, mlperf or file:PATH",
    )  # fmt: skip
    _add(group, "--distinct", "N", 50, "how many different requests to prepare", type=int)
    _add(
        group, "--request-id", "FEATURE", "request_id",
        "the feature that tells the requests of examples:FILE apart",
    )  # fmt: skip
    _add(
        group, "--user-features", "PATTERN", [],
        "which features of generated traffic are the user's, like 'user_*'", nargs="+",
    )  # fmt: skip
    _add(group, "--seed", "SEED", 0, "same seed, same requests in the same order", type=int)


def _load(group: Any) -> None:
    one_of = group.add_mutually_exclusive_group(required=True)
    _add(
        one_of, "--rate", "R", None,
        "R requests per second, exponential gaps, never waiting for answers", type=_positive,
    )  # fmt: skip
    _add(one_of, "--clients", "K", None, "K clients that wait for their answers", type=whole)
    one_of.add_argument(
        "--find-max", action="store_true", help="search the highest rate that meets the target"
    )


def _gate(group: Any) -> None:
    text = "has to be at most this, like {}; --find-max searches for it"
    _add(
        group, "--sla-p95", "MS", None, "the 95th percentile of latency " + text.format("25ms"),
        type=_milliseconds,
    )  # fmt: skip
    _add(group, "--sla-p99", "MS", None, "the 99th, like 60ms", type=_milliseconds)
    _add(group, "--max-errors", "N", None, "how many calls of a series may fail", type=_count)
    _add(
        group, "--junit", "FILE", None, "the result as JUnit XML too; report.json has it anyway",
        type=Path,
    )  # fmt: skip


def _measuring(group: Any) -> None:
    _add(group, "--seconds", "S", 5.0, "how long a window sends", type=_positive)
    _add(group, "--windows", "W", 3, "windows of every format, taken in turn", type=whole)
    _add(group, "--timeout", "S", 10.0, "of a call, in seconds", type=_positive)
    _add(group, "--check-every", "N", 10, "check one answer of N, 0 for none", type=int)
    _add(
        group,
        "--tolerance",
        "X",
        1e-5,
        "the largest score difference that is not wrong",
        type=_not_negative,
    )
    _add(
        group, "--output", "DIR", Path("build/loadtest"), "for report.html and report.json",
        type=Path,
    )  # fmt: skip


def _add(group: Any, flag: str, metavar: str, default: Any, text: str, **more: Any) -> None:
    shown = f" (default {default})" if default or default == 0 else ""
    group.add_argument(flag, metavar=metavar, default=default, help=text + shown, **more)


def whole(text: str) -> int:
    """A whole number above 0.

    Raises:
      argparse.ArgumentTypeError: it is none.
    """
    if not (text.strip().isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _not_negative(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or above")
    return value


def _milliseconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", text)
    if not found or not float(found[1]) > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: wanted is a time like 25ms or 1.5s")
    return float(found[1]) * (1000 if found[2] == "s" else 1)
