"""Generates load with K clients; each sends its next request when the last one is answered."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count as counter

from colcast.loadtest.measure.meters import Meter
from colcast.loadtest.measure.recording import Recording, Sample
from colcast.loadtest.send.connection import Connection, Request


class ClosedLoop:
    """Connected clients, which are reused from run to run."""

    def __init__(self, connect: Callable[[], Connection], clients: int) -> None:
        self._resources = ExitStack()
        self._connections = [
            self._resources.enter_context(closing(connect())) for _ in range(clients)
        ]
        self._pool = self._resources.enter_context(ThreadPoolExecutor(clients))
        self._stopped = threading.Event()

    def run(
        self,
        requests: Sequence[Request],
        *,
        calls: int | None = None,
        seconds: float | None = None,
        meter: Meter | None = None,
        keep_every: int = 0,
    ) -> Recording:
        """Sends `requests` in turn with all clients until `calls` or `seconds` is reached.

        Args:
          requests: at least one.
          calls: the largest number of calls.
          seconds: the time after which no call is sent.
          meter: measures the server, if that is possible.
          keep_every: the number of calls from one sampled answer to the next; 0 for no samples.
        """
        taken = counter()  # next() of a counter is atomic
        cpu = meter.cpu_seconds() if meter else 0.0
        began = time.perf_counter()

        def more(number: int) -> bool:
            if self._stopped.is_set() or (calls is not None and number >= calls):
                return False
            return seconds is None or time.perf_counter() - began < seconds

        total = Recording()
        clients = [
            self._pool.submit(_client, connection, requests, taken, more, began, keep_every)
            for connection in self._connections
        ]
        for client in clients:
            total.extend(client.result(), after=False)
        total.wall_seconds = time.perf_counter() - began
        if meter:
            total.server_cpu_seconds = meter.cpu_seconds() - cpu
        return total

    def __enter__(self) -> "ClosedLoop":
        """Returns the loop itself; its clients are ready to run."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the clients after their current calls, and disconnects."""
        self._stopped.set()
        self._resources.close()


def _client(
    connection: Connection,
    requests: Sequence[Request],
    taken: "counter[int]",
    more: Callable[[int], bool],
    began: float,
    keep_every: int,
) -> Recording:
    recording = Recording()
    while more(number := next(taken)):
        which = number % len(requests)
        answer = connection.call(requests[which])
        recording.add(requests[which], answer, began)
        if keep_every and number % keep_every == 0 and answer.code == "OK":
            recording.samples.append(Sample(which, answer.response))
    return recording
