"""Chooses the server for a call: its user's server, unless that is much busier than others.

Rendezvous hashing: every server has a weight for every key, and the heaviest server is the key's
home. When a server joins or leaves, only users whose home it becomes or was move. Pure functions.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b


def home(key: str, servers: Collection[str]) -> str:
    """The server for a key's calls; the same in every process.

    Args:
        key: the user's key.
        servers: the servers' names, at least one, in any order.
    """
    return max(servers, key=lambda server: _weight(key, server))


def choose(key: str, in_flight: Mapping[str, int], load_bound: float, turn: int = 0) -> str:
    """The server that gets the next call.

    With a key: the heaviest for the key among servers with less than `load_bound` times the mean of
    calls in flight, counting this call; there always is one. Without a key: a server with the
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
