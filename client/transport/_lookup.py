"""Looks up the addresses of a DNS name, again and again while calls are made."""

import socket
import threading
import time
from collections.abc import Callable

LookUp = Callable[[str, int], list[str]]


def addresses_of(host: str, port: int) -> list[str]:
    """All addresses of a name, as HOST:PORT: IPv4 addresses if there are any, else IPv6.

    Raises:
        OSError: the name has none, or could not be looked up.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    four = {str(at[0]) for family, *_, at in found if family == socket.AF_INET}
    six = {f"[{at[0]!s}]" for family, *_, at in found if family == socket.AF_INET6}
    return [f"{one}:{port}" for one in sorted(four or six)]


class Lookup:
    """The addresses of one name. A separate thread waits for DNS; calls do not.

    Attributes:
        addresses: the result of the last successful look-up; empty before the first.
        problem: the reason why the last look-up failed; empty if it succeeded.
    """

    def __init__(self, host: str, port: int, look_up: LookUp = addresses_of) -> None:
        self.addresses: tuple[str, ...] = ()
        self.problem = ""
        self._name = host, port
        self._look_up = look_up
        self._lock = threading.Lock()
        self._next = 0.0

    def refresh(self) -> None:
        """Starts another look-up if the last one was long ago or failed."""
        now = time.monotonic()
        if now < self._next:
            return
        with self._lock:
            if now < self._next:
                return
            self._next = now + _SECONDS
        threading.Thread(target=self._refresh, name="colcast-dns", daemon=True).start()

    def _refresh(self) -> None:
        try:
            self.addresses = tuple(self._look_up(*self._name))
        except OSError as error:
            self.problem = f"cannot resolve {self._name[0]!r}: {error.strerror or error}"
            self._next = time.monotonic() + _SECONDS_AFTER_A_PROBLEM
        else:
            self.problem = ""


_SECONDS = 5.0
_SECONDS_AFTER_A_PROBLEM = 0.5
