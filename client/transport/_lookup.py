"""A DNS name -> the addresses behind it, looked up again while calls are made."""

import socket
import threading
import time
from collections.abc import Callable

LookUp = Callable[[str, int], list[str]]


def addresses_of(host: str, port: int) -> list[str]:
    """Every address of a name, as HOST:PORT: those of IPv4 if there are any, else those of IPv6.

    Raises:
        OSError: the name has none, or could not be looked up.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    four = {str(at[0]) for family, *_, at in found if family == socket.AF_INET}
    six = {f"[{at[0]!s}]" for family, *_, at in found if family == socket.AF_INET6}
    return [f"{one}:{port}" for one in sorted(four or six)]


class Lookup:
    """The addresses of one name. A thread of its own waits for DNS; calls do not.

    Attributes:
        addresses: as of the last time the name was found; empty before the first.
        problem: why it was not found the last time; empty if it was.
    """

    def __init__(self, host: str, port: int, look_up: LookUp = addresses_of) -> None:
        self.addresses: tuple[str, ...] = ()
        self.problem = ""
        self._name = host, port
        self._look_up = look_up
        self._lock = threading.Lock()
        self._next = 0.0

    def refresh(self) -> None:
        """Begins to look the name up again if that was long ago, or found nothing."""
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


# Implementation details follow.

_SECONDS = 5.0
_SECONDS_AFTER_A_PROBLEM = 0.5
