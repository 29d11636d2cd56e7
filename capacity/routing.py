"""Which replica gets a request.

By user is rendezvous hashing, as the client has it (client/_choice.py); Envoy's hashes spread users
in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt
from colcast.capacity.users import Users

Choose = Callable[[int, Sequence[int]], int]
"""(number of the request, calls in flight of each replica) -> the replica it goes to."""


@dataclass(frozen=True)
class Routing:
    """A way to divide requests.

    Attributes:
      title: for tables.
      by_user: whether a user's requests go to one replica; otherwise replicas take turns.
      bound: a replica with so many times the mean of calls in flight gets no more.
    """

    title: str
    by_user: bool = False
    bound: float = inf

    def among(self, replicas: int, users: Users) -> Choose:
        """Divides the requests of `users` among so many replicas."""
        if not self.by_user or replicas == 1:
            return lambda number, _: number % replicas
        of_user, preferred = _preferences(users, replicas)
        if self.bound == inf:
            homes: list[int] = preferred[of_user, 0].tolist()
            return lambda number, _: homes[number]
        orders: list[list[int]] = preferred.tolist()

        def choose(number: int, in_flight: Sequence[int]) -> int:
            most = self.bound * (sum(in_flight) + 1) / replicas
            order: list[int] = orders[of_user[number]]
            return next(replica for replica in order if in_flight[replica] < most)

        return choose


def routings(bound: float) -> list[Routing]:
    """The three that are compared."""
    return [
        Routing("round robin"),
        Routing("by user", by_user=True),
        Routing(f"by user, at most {bound:g} times the mean", by_user=True, bound=bound),
    ]


def _preferences(users: Users, replicas: int) -> tuple[Users, npt.NDArray[np.int64]]:
    """Each request's place among the distinct users, and of each of those the replicas in order."""
    distinct, of_user = np.unique(users, return_inverse=True)
    pairs = distinct.astype(np.uint64)[:, None] << np.uint64(16) | np.arange(
        replicas, dtype=np.uint64
    )
    return of_user, np.argsort(_mixed(pairs), axis=1)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Splitmix64: neighbours get values that have nothing to do with each other."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
