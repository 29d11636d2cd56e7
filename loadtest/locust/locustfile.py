"""Locust users that send ranking requests, one class per format. Each waits for its answers.

  locust -f "$(colcast loadtest --locust-file)" --host 127.0.0.1:8500 --model movies --turns 5
  locust -f "$(colcast loadtest --locust-file),my_shape.py" --mix example=1,late=3 ...

All features of Locust work: its web page, --headless, --csv, --master and --worker. A run ends with
a comparison of the formats. Users that wait for answers hide an overload, which `colcast loadtest
--rate` shows.
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc.experimental.gevent  # type: ignore[import-not-found]
import locust.stats
from colcast.client import Policies, RankingClient
from colcast.loadtest.locust.comparison import Comparison
from colcast.loadtest.locust.turns import Sender, Turns, three_digits
from colcast.loadtest.locust.users import USERS, TurnsUser, mixed
from colcast.loadtest.measure.meters import Meter, meter_of
from colcast.loadtest.send import traffic
from colcast.loadtest.send.connection import Connection
from colcast.loadtest.send.formats import FORMATS, encode, parse_formats, signature_for
from colcast.loadtest.send.generated import ADVICE, IDS
from colcast.loadtest.send.sizes import parse_sizes
from gevent.lock import BoundedSemaphore
from locust import between, events
from locust.runners import MasterRunner, WorkerRunner

grpc.experimental.gevent.init_gevent()  # without this, a call blocks the process's other users
locust.stats.bucket_response_time = three_digits

_TIMEOUT_SECONDS = 60.0
globals().update({user.__name__: user for user in USERS.values()})  # Locust looks for them here


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: Any) -> None:
    group = parser.add_argument_group("ranking requests")
    group.add_argument("--model", default="", help="the served model's name")
    group.add_argument(
        "--formats",
        default="",
        metavar="A,B",
        help=f"formats to send equally often: {', '.join(USERS)}",
    )
    group.add_argument("--mix", default="", metavar="A=1,B=3", help="formats with weights")
    group.add_argument(
        "--turns",
        type=int,
        default=0,
        metavar="S",
        help="formats take turns of S whole seconds; 0: all formats at once",
    )
    group.add_argument("--metrics", default="", help="as for colcast loadtest")
    group.add_argument("--signature", help="as for colcast loadtest")
    group.add_argument("--ids", type=int, default=IDS, help="as for colcast loadtest")
    group.add_argument("--traffic", default="generated", help="as for colcast loadtest")
    group.add_argument("--sizes", default="200", help="as for colcast loadtest")
    group.add_argument("--distinct", type=int, default=50, help="as for colcast loadtest")
    group.add_argument("--traffic-seed", type=int, default=0, help="as for colcast loadtest --seed")
    group.add_argument("--request-id", default="request_id", help="as for colcast loadtest")
    group.add_argument("--user-features", nargs="+", default=[], help="as for colcast loadtest")
    group.add_argument(
        "--think-time", default="0", metavar="S", help="seconds between calls, or FROM-TO"
    )


@events.init.add_listener  # type: ignore[untyped-decorator]
def _set_up(environment: Any, **_: Any) -> None:
    options = environment.parsed_options
    if not options.model:
        raise SystemExit("the served model's name is missing: --model NAME")
    formats = _chosen(environment, options)
    low, _, high = options.think_time.partition("-")
    classes: list[Any] = [*USERS.values(), TurnsUser]
    for user in classes:
        user.wait_time = between(float(low), float(high or low))
    environment.prepared, environment.preparing = {}, BoundedSemaphore()
    environment.first_failures = {}
    environment.advice = ADVICE if options.traffic == "generated" else ""
    if not isinstance(environment.runner, MasterRunner):
        environment.sender = Sender(environment, formats, options.turns)
    if not isinstance(environment.runner, WorkerRunner):
        _compare(
            environment, Turns(environment, formats, options.turns, lambda: _meter(environment))
        )
    environment.formats = formats
    if environment.host:
        _prepare(environment)


def _chosen(environment: Any, options: Any) -> Sequence[str]:
    """The formats to send; also sets the environment's user classes."""
    if options.turns < 0:
        raise SystemExit(f"--turns {options.turns}: expected seconds, or 0 to mix formats")
    if options.mix and (options.formats or options.turns):
        raise SystemExit("--mix sets weights, so it cannot be combined with --formats or --turns")
    classes = environment.user_classes
    if options.mix:
        classes[:] = mixed(options.mix)
    elif options.formats:
        classes[:] = mixed(",".join(f"{name}=1" for name in _formats(options.formats)))
    formats = [user.format for user in USERS.values() if user in classes and user.weight]
    if options.turns:
        TurnsUser.weight = 1
        classes[:] = [TurnsUser]
    return formats


def _formats(text: str) -> Sequence[str]:
    try:
        return parse_formats(text)
    except ValueError as error:
        raise SystemExit(f"--formats {text!r}: {error}") from None


def _meter(environment: Any) -> Meter:
    """Returns the meter of the server under test.

    Raises:
      LookupError: the server cannot be measured.
    """
    meter = meter_of(environment.host, environment.parsed_options.metrics)
    if meter is None:
        raise LookupError(
            f"{environment.host} is on another machine: give its Prometheus page, "
            "--metrics http://HOST:REST_PORT/metrics"
        )
    return meter


def _compare(environment: Any, turns: Turns) -> None:
    """Prints the comparison when a run ends."""
    comparison = Comparison(turns)

    def tell(**_: Any) -> None:
        turns.end()
        comparison.print()
        if prefix := environment.parsed_options.csv_prefix:
            Path(f"{prefix}_comparison.csv").write_text(comparison.csv(), encoding="utf-8")

    environment.events.quitting.add_listener(tell)
    if environment.web_ui:
        from colcast.loadtest.locust.comparison import add_tab

        add_tab(environment.web_ui, comparison)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _prepare(environment: Any, **_: Any) -> None:
    """Encodes all requests before the first user starts, so that encoding delays no user."""
    if isinstance(environment.runner, MasterRunner):
        return
    with environment.preparing:  # a master may start a run while a worker still prepares
        _prepare_missing(environment)


def _prepare_missing(environment: Any) -> None:
    options, host = environment.parsed_options, environment.host
    missing = [name for name in environment.formats if (host, name) not in environment.prepared]
    if not missing:
        return
    read = {"sizes": parse_sizes(options.sizes), "seed": options.traffic_seed}

    def connect(signature: str | None = None) -> RankingClient:
        return RankingClient(
            host,
            options.model,
            timeout_seconds=_TIMEOUT_SECONDS,
            signature=signature,
            policies=Policies(nan="send"),
        )

    data = traffic.load(SimpleNamespace(**{**vars(options), **read}), connect)
    with connect() as client:
        schema = client.schema() if any(FORMATS[name] for name in missing) else None
    for name in missing:
        called = signature_for(schema, name, options.signature) if schema else None
        with connect(called) as client:
            requests = [encode(client, name, one) for one in data]
        with Connection(host) as connection:
            for request in requests:  # warm-up calls, before the first turn
                connection.call(request)
        environment.prepared[host, name] = requests
