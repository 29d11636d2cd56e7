"""Resolves server addresses; turns options into gRPC channel arguments."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from colcast.client._errors import InputError
from colcast.client._settings import ChannelOptions

LookUp = Callable[[str, int], list[str]]


def addresses_of(host: str, port: int) -> list[str]:
    """All addresses of a name as HOST:PORT; IPv6 addresses only if there are no IPv4 addresses.

    Raises:
        OSError: the name has none, or could not be looked up.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    four = {str(at[0]) for family, *_, at in found if family == socket.AF_INET}
    six = {f"[{at[0]!s}]" for family, *_, at in found if family == socket.AF_INET6}
    return [f"{one}:{port}" for one in sorted(four or six)]


class Lookup:
    """Looks up the addresses of a name in a separate thread, so calls do not wait for DNS.

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
        """Starts another look-up if the last one failed or was long ago."""
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


TLS_HINT = (
    "the port speaks TLS: use channel=ChannelOptions(tls=Tls(...)), or --tls on a command line"
)


def servers_at(address: str | Sequence[str]) -> Sequence[str] | Lookup:
    """The servers' addresses, from a client's address argument, or a name to look up.

    `dns:///NAME:PORT` is looked up by the client, and every address of the name is a server. Other
    names are left to gRPC, which follows changes of the name and uses its addresses in turn.

    Raises:
        InputError: there is no address, or one without a port.
    """
    addresses = [address] if isinstance(address, str) else list(address)
    addresses = [part.strip() for one in addresses for part in one.split(",")]
    if not any(addresses):
        raise InputError("no address of a server")
    if addresses[0].startswith(_DNS):
        name, _, port = addresses[0].removeprefix(_DNS).rpartition(":")
        if len(addresses) > 1 or not name or not port.isdigit():
            expected = f"expected one {_DNS}NAME:PORT, or HOST:PORT for each server"
            raise InputError(f"{expected}, got {','.join(addresses)!r}")
        return Lookup(name.strip("[]"), int(port))
    if "://" in addresses[0] or addresses[0].startswith(_SCHEMES):
        return (",".join(addresses),)
    for one in addresses:
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"the server's address must be HOST:PORT, got {one!r}")
    return tuple(dict.fromkeys(addresses))


def channel_arguments(
    options: ChannelOptions, address: str | Sequence[str]
) -> list[tuple[str, Any]]:
    """The gRPC channel arguments for these options: limits, health, round robin, keepalive."""
    arguments: list[tuple[str, Any]] = [
        ("grpc.max_send_message_length", options.max_message_bytes),
        ("grpc.max_receive_message_length", options.max_message_bytes),
        ("grpc.keepalive_time_ms", int(options.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
        # The client retries by itself, within the deadline, so gRPC need not keep copies.
        ("grpc.enable_retries", 0),
        # Reconnect soon after a server's restart. With gRPC's default, the delay grows to two
        # minutes, and the next server may restart in the meantime.
        ("grpc.min_reconnect_backoff_ms", 5_000),  # how long one attempt may take
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 500),
    ]
    first = address if isinstance(address, str) else address[0]
    named = first.startswith(_DNS)
    several = first != address or "," in first
    first = first.partition(",")[0].strip().removeprefix(_DNS)
    if named:
        # gRPC gets addresses but must send the name, because proxies route by name.
        arguments += [("grpc.default_authority", first), ("grpc.enable_http_proxy", 0)]
    if named or several:
        # Calls go to channels that are ready, so a channel without calls must stay connected.
        arguments.append(("grpc.client_idle_timeout_ms", 2**31 - 1))
    if options.tls is not None and (options.tls.server_name or several or named):
        name = options.tls.server_name or first.rpartition(":")[0].strip("[]")
        arguments.append(("grpc.ssl_target_name_override", name))
    return arguments


def speaks_tls(address: str) -> bool:
    """Whether the first HOST:PORT speaks TLS. No network operation takes over half a second."""
    host, _, port = address.partition(",")[0].strip().rpartition(":")
    if not host or not port.isdigit():
        return False  # a socket's path, or another gRPC scheme
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Skipping verification is safe here, because nothing is sent.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), _TLS_SECONDS) as connected,
            context.wrap_socket(connected),
        ):
            return True
    except OSError as error:
        return "ALERT" in str(getattr(error, "reason", ""))  # only a TLS server sends alerts


# gRPC watches each server's health (grpc.health.v1, for the server as a whole) and calls it only
# while it reports that it serves. A server without a health service need only be connected.
# https://github.com/grpc/grpc/blob/master/doc/health-checking.md
_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": ""},
}

_DNS = "dns:///"
_SCHEMES = ("ipv4:", "ipv6:", "unix:", "dns:", "unix-abstract:", "xds:")

_TLS_SECONDS = 0.5
