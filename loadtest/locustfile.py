"""Locust users that rank: one class per format, each waiting for its answers.

  locust -f loadtest/locustfile.py --host 127.0.0.1:8500 --model movies
  locust -f loadtest/locustfile.py,loadtest/shapes/step.py --mix example=1,late=3 ...

Everything Locust offers works: its web page, --headless, --csv, --master and --worker. Users that
wait hide an overload: `colcast loadtest --rate` does not wait.
"""

from typing import Any

import grpc.experimental.gevent  # type: ignore[import-not-found]
from colcast.client import RankingClient
from colcast.loadtest.connection import Connection
from colcast.loadtest.formats import FORMATS, encode, signature_for
from colcast.loadtest.generated import IDS
from colcast.loadtest.request_bytes import RequestBytes
from colcast.loadtest.sizes import parse_sizes
from colcast.loadtest.traffic import Traffic
from locust import User, between, constant, events, task
from locust.runners import MasterRunner

grpc.experimental.gevent.init_gevent()  # or a call would stop every other user of the process

_TIMEOUT_SECONDS = 60.0


class CallFailed(Exception):
    """A call that did not come back OK; Locust counts failures by this text: the gRPC code."""


class RankingUser(User):  # type: ignore[misc]
    """Sends one prepared request after the other on a connection of its own."""

    abstract = True
    format = ""
    wait_time = constant(0)

    def on_start(self) -> None:
        """Connects."""
        self.connection = Connection(self.host)
        self.requests = self.environment.prepared[self.host, self.format]
        self.next = id(self) % len(self.requests)  # users do not all start with the same one

    def on_stop(self) -> None:
        """Disconnects."""
        self.connection.close()

    @task  # type: ignore[untyped-decorator]
    def rank(self) -> None:
        """One request, reported to Locust."""
        request = self.requests[self.next]
        self.next = (self.next + 1) % len(self.requests)
        answer = self.connection.call(request)
        self.environment.events.request.fire(
            request_type=request.method.rpartition("/")[2],
            name=FORMATS[self.format].title,
            response_time=1000 * answer.seconds,
            response_length=len(answer.response),
            exception=None if answer.code == "OK" else CallFailed(answer.code),
            context={"request_bytes": len(request.payload), "message": answer.message},
        )


class ExampleUser(RankingUser):
    """Today's way: a tf.Example per candidate."""

    format = "example"


class ElwcUser(RankingUser):
    """The user as the context of an ExampleListWithContext; for models that Regress or Classify."""

    format = "elwc"
    weight = 0  # until --mix asks for it


class RepeatedUser(RankingUser):
    """Columns, the user on every row."""

    format = "repeated"


class ColumnarUser(RankingUser):
    """Columns, the user as one row that the server repeats."""

    format = "columnar"


class LateUser(RankingUser):
    """Columns, the user as one row that the model repeats; for models exported with --late."""

    format = "late"
    weight = 0


class StockUser(RankingUser):
    """Columns for servers that do not repeat rows."""

    format = "stock"
    weight = 0


class RecordedUser(RankingUser):
    """The requests of --traffic requests:FILE, as they were caught."""

    format = "recorded"
    weight = 0


_ALL = (ExampleUser, ElwcUser, RepeatedUser, ColumnarUser, LateUser, StockUser, RecordedUser)
_CLASSES = {user.format: user for user in _ALL}


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: Any) -> None:
    group = parser.add_argument_group("ranking requests")
    group.add_argument("--model", default="", help="the served model's name")
    group.add_argument(
        "--mix", default="", metavar="A=1,B=3", help=f"formats by weight: {', '.join(_CLASSES)}"
    )
    group.add_argument("--signature", help="as for colcast loadtest")
    group.add_argument("--ids", type=int, default=IDS, help="as for colcast loadtest")
    group.add_argument("--traffic", default="generated", help="as for colcast loadtest")
    group.add_argument("--sizes", default="200", help="as for colcast loadtest")
    group.add_argument("--distinct", type=int, default=50, help="as for colcast loadtest")
    group.add_argument("--traffic-seed", type=int, default=0, help="same seed, same requests")
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
    if options.mix:
        environment.user_classes[:] = mixed(options.mix)
    low, _, high = options.think_time.partition("-")
    for user in _CLASSES.values():
        user.wait_time = between(float(low), float(high or low))
    environment.prepared = {}
    RequestBytes(environment).listen()
    if environment.host:
        _prepare(environment)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _prepare(environment: Any, **_: Any) -> None:
    """Encodes before the first user starts: encoding would hold up users that already send."""
    if isinstance(environment.runner, MasterRunner):
        return
    options, host = environment.parsed_options, environment.host
    wanted = {user.format for user in environment.user_classes}
    missing = [name for name in sorted(wanted) if (host, name) not in environment.prepared]
    if not missing:
        return
    traffic = Traffic(
        options.traffic,
        parse_sizes(options.sizes),
        options.distinct,
        options.traffic_seed,
        options.request_id,
        options.user_features,
        options.signature,
        options.ids,
    )

    def connect(signature: str | None = None) -> RankingClient:
        return RankingClient(
            host, options.model, timeout_seconds=_TIMEOUT_SECONDS, signature=signature
        )

    data = traffic.load(connect)
    with connect() as client:
        schema = client.schema() if options.signature else None
    for name in missing:
        called = signature_for(schema, name, options.signature) if schema else None
        with connect(called) as client:
            environment.prepared[host, name] = [encode(client, name, one) for one in data]


def mixed(text: str) -> list[type[RankingUser]]:
    """Reads `example=1,late=3` and gives these classes these weights.

    Raises:
      SystemExit: a format that has no users, or a weight that is not a positive whole number.
    """
    chosen = []
    for part in text.split(","):
        name, _, weight = part.partition("=")
        if name not in _CLASSES or not weight.isdigit() or weight == "0":
            raise SystemExit(f"--mix {part!r}: wanted is {'|'.join(_CLASSES)}=WEIGHT")
        _CLASSES[name].weight = int(weight)
        chosen.append(_CLASSES[name])
    return chosen
