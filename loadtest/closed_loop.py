"""K clients that each send the next request when the last one is answered."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count as counter
from typing import Self

from colcast.loadtest.connection import Connection, Request
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording


class ClosedLoop:
    """Connected clients, reused from run to run."""

    def __init__(self, target: str, clients: int, *, timeout_seconds: float = 30.0) -> None:
        """Prepares `clients` connections to `target` (HOST:PORT)."""
        self._resources = ExitStack()
        self._connections = [
            self._resources.enter_context(Connection(target, timeout_seconds))
            for _ in range(clients)
        ]
        self._pool = self._resources.enter_context(ThreadPoolExecutor(clients))
        self._stopped = threading.Event()

    def run(
        self, requests: Sequence[Request], calls: int, meter: ProcessMeter | None = None
    ) -> Recording:
        """Sends `calls` requests, going round `requests`, all clients together.

        Args:
          requests: at least one.
          calls: how many to send.
          meter: the server's process, if it runs here.
        """
        taken = counter()  # next() of a counter is atomic
        cpu = meter.cpu_seconds() if meter else 0.0
        began = time.perf_counter()

        def client(connection: Connection) -> Recording:
            mine = Recording()
            while (number := next(taken)) < calls and not self._stopped.is_set():
                request = requests[number % len(requests)]
                mine.add(request, connection.call(request), began)
            return mine

        total = Recording()
        for recording in self._pool.map(client, self._connections):
            total.extend(recording, after=False)
        total.wall_seconds = time.perf_counter() - began
        if meter:
            total.server_cpu_seconds = meter.cpu_seconds() - cpu
        return total

    def __enter__(self) -> Self:
        """The clients, ready to run."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops clients that still run, after their call, and disconnects."""
        self._stopped.set()
        self._resources.close()
