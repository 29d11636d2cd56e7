"""Which server gets a call: the one that its user's calls go to, unless that is busier than others.

Rendezvous hashing: every server has a weight for every key, and the heaviest is the key's home. A
server that comes or goes moves only the users whose home it becomes or was. Pure functions.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b


def home(key: str, servers: Collection[str]) -> str:
    """The server that a key's calls go to; the same in every process.

    Args:
        key: whose calls.
        servers: their names, at least one, in any order.
    """
    return max(servers, key=lambda server: _weight(key, server))


def choose(key: str, in_flight: Mapping[str, int], load_bound: float, turn: int = 0) -> str:
    """The server that gets the next call.

    With a key: of the servers that have less than `load_bound` times the mean of calls in flight,
    this one counted, the one that is heaviest for the key. There always is one. Without: one
    that has the fewest calls in flight.

    Args:
        key: whose call; empty where nobody's.
        in_flight: server -> its calls in flight, at least one server.
        load_bound: 1 or more; infinity sends a key to its home always.
        turn: which of those without a key this call is: servers with equally many take turns.
    """
    servers = list(in_flight)
    if not key:
        first = turn % len(servers)
        return min(servers[first:] + servers[:first], key=in_flight.__getitem__)
    most = load_bound * (sum(in_flight.values()) + 1) / len(servers)
    return home(key, [server for server in servers if in_flight[server] < most])


# Implementation details follow.


def _weight(key: str, server: str) -> bytes:
    return blake2b(f"{key} {server}".encode(), digest_size=8).digest()
