"""Makes formats take turns, so that the server's CPU time is known for each.

Each sending process has a gate, at which its users' calls wait. The deciding process (the only
process, or the master) opens and closes all gates with Locust's messages. A gate counts as closed
once its last call is answered, so all CPU time until then belongs to the format whose turn it was.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import gevent
from colcast.loadtest.locust.tally import Tally
from colcast.loadtest.measure.meters import Meter
from gevent.event import Event
from locust.runners import STATE_MISSING, LocalRunner

ALL = ""
"""In place of a format's name: all formats, mixed."""

# Messages to the sending processes, and their replies.
_TURN, _COUNTED = "colcast_turn", "colcast_counted"
_LAST_ANSWER_SECONDS = 90.0  # longer than any call


class Gate:
    """The gate of a sending process: holds its users' calls until their turn, and counts them."""

    def __init__(self, environment: Any, *, in_turns: bool) -> None:
        """Makes the gate for this environment's users; it is always open unless `in_turns`."""
        self._environment = environment
        self._in_turns = in_turns
        self._format = ALL
        self._open, self._idle = Event(), Event()
        self._idle.set()
        self._under_way = 0
        self.tally = Tally()

    def listen(self) -> None:
        """Hooks into Locust's events and messages."""
        events = self._environment.events
        events.test_start.add_listener(self._start)
        events.request.add_listener(self._count)
        events.report_to_master.add_listener(self._report)
        self._environment.runner.register_message(_TURN, self._turn, concurrent=True)

    @contextmanager
    def call(self) -> Iterator[str]:
        """Waits until calls may be sent; yields the format to send, or `ALL`."""
        self._open.wait()
        self._under_way += 1
        self._idle.clear()
        try:
            yield self._format
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    def _start(self, **_: Any) -> None:
        self.tally.take()
        if not self._in_turns:
            self._open.set()

    def _turn(self, msg: Any, **_: Any) -> None:
        if msg.data is not None:
            self._format = msg.data
            self._open.set()
            return
        self._open.clear()
        self._idle.wait()
        self._environment.runner.send_message(_COUNTED, self.tally.take())

    def _report(self, client_id: str, data: dict[str, Any]) -> None:
        data[_COUNTED] = self.tally.take()

    def _count(
        self, response_time: float, exception: Any, context: dict[str, Any], **_: Any
    ) -> None:
        if "format" in context:  # calls of other locustfiles have no format
            calls = self.tally.of(context["format"])
            calls.add(response_time, context["request_bytes"], ok=exception is None)


@dataclass
class Used:
    """CPU seconds of the server, and the number of answered calls that used them."""

    cpu_seconds: float = 0.0
    answered: int = 0

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per answered call; NaN if they are not known."""
        return 1000 * self.cpu_seconds / (self.answered or float("nan"))


class Turns:
    """Decides whose turn it is, and adds up all calls and CPU time, in the deciding process."""

    def __init__(
        self,
        environment: Any,
        formats: Sequence[str],
        seconds: float | None,
        meter: Callable[[], Meter],
    ) -> None:
        """Decides the turns for a Locust environment.

        Args:
          environment: Locust's environment.
          formats: the formats that take turns.
          seconds: the length of a turn; None to send all formats at once.
          meter: returns the server's meter at the start of each run; raises LookupError if there is
            none.
        """
        self._environment = environment
        self._formats = formats if seconds else [ALL]
        self._seconds = seconds
        self._find_meter = meter
        self._meter: Meter | None = None
        self._now: str | None = None  # the format whose turn it is
        self._began, self._answered_before = 0.0, 0
        self._waits_for: set[str] = set()
        self._all_counted = Event()
        self._course = gevent.Greenlet()
        self._total = Tally()
        self.used: dict[str, Used] = {}
        self.not_measured = ""

    def listen(self) -> None:
        """Hooks into Locust's events and messages."""
        events = self._environment.events
        events.test_start.add_listener(self._start)
        events.worker_report.add_listener(lambda data, **_: self._take(data))
        events.test_stopping.add_listener(lambda **_: self.end())
        self._environment.runner.register_message(_COUNTED, self._counted)

    def total(self) -> Tally:
        """The calls of this run that this process has counted so far."""
        gate = self._environment.gate
        if gate:
            self._total.merge(gate.tally.take())
        return self._total

    def end(self) -> None:
        """Ends the last turn; no more calls are sent, and all have been counted."""
        self._course.kill()
        if self._now is not None:
            self._close()

    def _start(self, **_: Any) -> None:
        self._total, self.used, self.not_measured = Tally(), {}, ""
        self._meter = None
        try:
            self._meter = self._find_meter()
        except (LookupError, ProcessLookupError) as error:
            self.not_measured = str(error)
        self._open(self._formats[0])
        self._course = gevent.spawn(self._go_round)

    def _go_round(self) -> None:
        """Runs rounds of turns; each round begins with a different format."""
        for number in count(1) if self._seconds else ():
            gevent.sleep(self._seconds)
            self._close()
            turn, place = divmod(number, len(self._formats))
            self._open(self._formats[(turn + place) % len(self._formats)])

    def _open(self, format_name: str) -> None:
        self._answered_before = self.total().answered
        self._began = self._cpu_seconds()
        self._now = format_name
        self._environment.runner.send_message(_TURN, format_name)

    def _close(self) -> None:
        """Closes the gates and waits for the last answers."""
        assert self._now is not None
        self._waits_for = self._senders()
        self._all_counted.clear()
        self._environment.runner.send_message(_TURN, None)
        if self._waits_for:
            self._all_counted.wait(_LAST_ANSWER_SECONDS)
        used = self.used.setdefault(self._now, Used())
        used.cpu_seconds += self._cpu_seconds() - self._began
        used.answered += self.total().answered - self._answered_before
        self._now = None

    def _senders(self) -> set[str]:
        runner = self._environment.runner
        if isinstance(runner, LocalRunner):
            return {"local"}
        return {worker.id for worker in runner.clients.all if worker.state != STATE_MISSING}

    def _counted(self, msg: Any, **_: Any) -> None:
        self._total.merge(msg.data)
        self._waits_for.discard(msg.node_id)
        if not self._waits_for:
            self._all_counted.set()

    def _take(self, data: dict[str, Any]) -> None:
        self._total.merge(data.get(_COUNTED, {}))

    def _cpu_seconds(self) -> float:
        try:
            return self._meter.cpu_seconds() if self._meter else float("nan")
        except (LookupError, ProcessLookupError) as error:
            self.not_measured = str(error)
            return float("nan")
