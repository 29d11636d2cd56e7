"""The servers of one client: their channels and states, and which server gets a call."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import grpc
from colcast.client.transport._channel import Lookup


# Rendezvous hashing: every server has a weight for every key, and the heaviest server is the key's
# home. When a server is added or removed, only the users whose home is that server move.
def home(key: str, servers: Collection[str]) -> str:
    """The server for a key's calls; the same in every process.

    Args:
        key: the user's key.
        servers: the servers' names, at least one, in any order.
    """
    return max(servers, key=lambda server: _weight(key, server))


def choose(key: str, in_flight: Mapping[str, int], load_bound: float, turn: int = 0) -> str:
    """The server that gets the next call.

    With a key, it is the heaviest server for the key that has fewer than `load_bound` times the
    mean number of calls in flight, this call included. Without a key, it is a server with the
    fewest calls in flight.

    Args:
        key: the user's key; empty if the call belongs to no user.
        in_flight: server -> its calls in flight, for at least one server.
        load_bound: 1 or more; infinity always sends a key to its home.
        turn: the number of this call among those without a key: servers with equally many calls
            take turns.
    """
    servers = list(in_flight)
    if not key:
        first = turn % len(servers)
        return min(servers[first:] + servers[:first], key=in_flight.__getitem__)
    most = load_bound * (sum(in_flight.values()) + 1) / len(servers)
    return home(key, [server for server in servers if in_flight[server] < most])


def _weight(key: str, server: str) -> bytes:
    return blake2b(f"{key} {server}".encode(), digest_size=8).digest()


_State = grpc.ChannelConnectivity
Watch = Callable[[Any], Callable[[], _State]]
"""Returns a function that reads a channel's state: ready only while its server serves."""


class Server:
    """One server.

    Attributes:
        address: its address, which identifies it.
        channel: the channel to this server alone.
        state: returns whether it is up.
        calls: number of calls in flight.
    """

    def __init__(self, address: str, channel: Any, state: Callable[[], _State]) -> None:
        self.address = address
        self.channel = channel
        self.state = state
        self.calls = 0
        self._methods: dict[str, Any] = {}

    def method(self, path: str) -> Any:
        """The callable for a method of the server."""
        if path not in self._methods:
            self._methods[path] = self.channel.unary_unary(path)
        return self._methods[path]


class Servers:
    """The servers that share a client's calls. Thread-safe.

    They are the given addresses, or the current addresses of a DNS name. A server that is removed
    from the name still finishes its calls.
    """

    def __init__(
        self,
        where: Collection[str] | Lookup,
        load_bound: float,
        open_channel: Callable[[str], Any],
        watch: Watch,
    ) -> None:
        """Opens no connections yet.

        Args:
            where: the servers' addresses, or the name to look up.
            load_bound: see `choose`.
            open_channel: address -> its channel.
            watch: see `Watch`; a single address is not watched.
        """
        self._where = where
        self._load_bound = load_bound
        self._open = open_channel
        self._watch = watch
        self._servers: Mapping[str, Server] = {}
        self._turn = 0
        self._lock = threading.Lock()

    def home(self, key: str) -> str:
        """The address for a key's calls while all servers are up; empty if none is known."""
        return home(key, self._servers) if self._servers else ""

    def take(self, key: str, tried: Sequence[str] = (), first: str = "") -> Server | None:
        """Chooses a server for a call with this key; give it back when the call ends.

        The first attempt goes to the server `first`, if it still exists.

        Prefers servers that are up, and among these the ones tried least often. If all are down, it
        returns any of them, whose channel reports why. Returns None if no server has been reached
        yet but one may still become reachable.
        """
        with self._lock:
            self._follow()
            among = list(self._servers.values())
            if len(among) > 1:
                among = self._able(among)
            if not among:
                return None
            self._turn += 1
            fewest = min(tried.count(one.address) for one in among)
            calls = {s.address: s.calls for s in among if tried.count(s.address) == fewest}
            address = choose(key, calls, self._load_bound, self._turn)
            if first in self._servers and not tried:
                address = first
            server = self._servers[address]
            server.calls += 1
            return server

    def give_back(self, server: Server) -> None:
        """Notes that a call has ended."""
        with self._lock:
            server.calls -= 1

    def has_another(self, tried: Collection[str]) -> bool:
        """Whether an untried server is up."""
        others = [one for one in self._servers.values() if one.address not in tried]
        return any(one.state() is _State.READY for one in others)

    def problem(self) -> tuple[str, str]:
        """Why no server was reached: the name of a gRPC status, and a message."""
        if isinstance(self._where, Lookup) and not self._servers:
            return "UNAVAILABLE", self._where.problem or "the servers' name is being looked up"
        return "DEADLINE_EXCEEDED", "no server could be reached"

    def channels(self) -> list[Any]:
        return [server.channel for server in self._servers.values()]

    def _follow(self) -> None:
        """Opens channels to new servers, and drops removed ones."""
        where = self._where
        if isinstance(where, Lookup):
            where.refresh()
            where = where.addresses
        if tuple(where) == tuple(self._servers):
            return
        have = self._servers
        self._servers = {one: have.get(one) or self._server(one) for one in where}

    def _server(self, address: str) -> Server:
        channel = self._open(address)
        alone = not isinstance(self._where, Lookup) and len(self._where) == 1
        return Server(address, channel, _always_up if alone else self._watch(channel))

    @staticmethod
    def _able(servers: list[Server]) -> list[Server]:
        """The servers that are up; all of them if all are down; none if their state is unknown."""
        states = [server.state() for server in servers]
        if _State.READY in states:
            return [s for s, state in zip(servers, states, strict=True) if state is _State.READY]
        return servers if all(state is _State.TRANSIENT_FAILURE for state in states) else []


def _always_up() -> _State:
    return _State.READY
