"""The users of locustfile.py, one class per format. Each user waits for its answers."""

from colcast.loadtest.send.connection import Answer, Connection
from colcast.loadtest.send.formats import FORMATS
from colcast.loadtest.send.generated import REFUSALS
from locust import User, constant, task


class CallFailed(Exception):
    """A call that did not return OK; Locust counts failures by this text."""


class RankingUser(User):  # type: ignore[misc]
    """Sends prepared requests one after another on its own connection."""

    abstract = True
    format = ""
    wait_time = constant(0)

    def on_start(self) -> None:
        self.connection = Connection(self.host)
        self.next = id(self)  # users start with different requests

    def on_stop(self) -> None:
        self.connection.close()

    @task  # type: ignore[untyped-decorator]
    def rank(self) -> None:
        """Sends one request and reports it to Locust."""
        self._send(self.environment.sender.format_now() or self.format)

    def _send(self, format_name: str) -> None:
        requests = self.environment.prepared[self.host, format_name]
        request = requests[self.next % len(requests)]
        self.next += 1
        answer = self.connection.call(request)
        self.environment.events.request.fire(
            request_type=request.method.rpartition("/")[2],
            name=format_name,
            response_time=1000 * answer.seconds if answer.code == "OK" else None,
            response_length=len(request.payload),
            exception=None if answer.code == "OK" else self._failed(format_name, answer),
            context={"message": answer.message},
        )

    def _failed(self, format_name: str, answer: Answer) -> CallFailed:
        """Makes the exception for a failed call.

        All failures with the same format and code have the text of the first one, so that Locust
        counts them together.
        """
        advice = self.environment.advice if answer.code in REFUSALS else ""
        text = f"{answer.code}: {answer.message}" + (advice and f"; {advice}")
        first = self.environment.first_failures.setdefault((format_name, answer.code), text)
        return CallFailed(first)


class TurnsUser(RankingUser):
    """Sends the format whose turn it is, with --turns."""

    weight = 0


_USUAL = ("example", "repeated", "columnar")  # the others are only sent if they are named
USERS: dict[str, type[RankingUser]] = {
    name: type(
        f"{name.capitalize()}User", (RankingUser,), {"format": name, "weight": int(name in _USUAL)}
    )
    for name in FORMATS
}
"""The classes by format."""


def mixed(text: str) -> list[type[RankingUser]]:
    """Reads `example=1,late=3`, sets the weights of these classes and returns the classes.

    Raises:
      SystemExit: a format has no users, or a weight is not a positive whole number.
    """
    chosen = []
    for part in text.split(","):
        name, _, weight = part.partition("=")
        if name not in USERS or not weight.isdigit() or weight == "0":
            raise SystemExit(f"--mix {part!r}: expected {'|'.join(USERS)}=WEIGHT")
        USERS[name].weight = int(weight)
        chosen.append(USERS[name])
    return chosen
