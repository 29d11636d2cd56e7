"""The fewest replicas that keep a latency target at a rate."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from colcast.capacity.measured import UnusableError
from colcast.capacity.routing import Routing
from colcast.capacity.service import Service
from colcast.capacity.simulation import Outcome, Replicas, Work, poisson_arrivals, simulate
from colcast.capacity.users import Recorded, Users, Zipf

_MOST_REPLICAS = 4096
_PRECISION = 0.01


@dataclass(frozen=True)
class Demand:
    """What has to be carried.

    Attributes:
      rate: requests per second.
      p99_ms: the target.
      spare: replicas that may be lost.
    """

    rate: float
    p99_ms: float
    spare: int = 1


@dataclass(frozen=True)
class Model:
    """What is simulated.

    Attributes:
      hit: a request whose user is known.
      miss: one whose user is not.
      workers: of a replica.
      users: who asks; None: whether a user is known makes no difference.
      states: that a replica can keep.
      requests: to simulate; the first half fills the caches.
      seed: same seed, same requests.
    """

    hit: Service
    miss: Service
    workers: int
    users: Zipf | Recorded | None = None
    states: int | None = None
    requests: int = 100_000
    seed: int = 0

    def run(self, rate: float, replicas: int, routing: Routing) -> Outcome:
        """The second half of the requests; the same ones at every rate and number of replicas."""
        count = len(self._drawn)
        outcome = simulate(
            poisson_arrivals(rate, count, self.seed + 2),
            self._drawn,
            routing,
            Replicas(replicas, self.workers, self.states if self.users else None),
            *self._works,
        )
        return outcome.after(count // 2)

    def first_visits(self) -> float:
        """The share of the second half's requests whose users came for the first time."""
        users = self._drawn
        first = np.unique(users, return_index=True)[1]
        return float((first >= len(users) // 2).sum() / (len(users) - len(users) // 2))

    def cpu_ms(self, hit_rate: float) -> float:
        """Per request."""
        return hit_rate * self.hit.cpu_ms + (1 - hit_rate) * self.miss.cpu_ms

    def busy(self, rate: float, replicas: int, hit_rate: float) -> float:
        """The share of all workers that is occupied."""
        occupied = hit_rate * self.hit.occupied_ms + (1 - hit_rate) * self.miss.occupied_ms
        return rate * occupied / 1000 / (replicas * self.workers)

    @cached_property
    def _drawn(self) -> Users:
        if self.users is None:
            return np.zeros(self.requests, np.int64)
        return self.users.draw(self.requests, self.seed)

    @cached_property
    def _works(self) -> tuple[Work, Work]:
        """What each request takes as a hit, and as a miss."""
        percentiles = 100 * np.random.default_rng(self.seed + 1).random(len(self._drawn))
        return self.hit.work(percentiles), self.miss.work(percentiles)


@dataclass(frozen=True)
class Plan:
    """What one way to divide requests needs.

    Attributes:
      routing: the way.
      replicas: with those to spare.
      hit_rate: users found while all replicas are there.
      cpu_ms: of the servers per request.
      busy: share of all workers.
      p99_ms: with all replicas.
      lost_hit_rate: users found with the spare ones lost.
      lost_p99_ms: then.
      replica_rate: requests per second of one replica then.
    """

    routing: Routing
    replicas: int
    hit_rate: float
    cpu_ms: float
    busy: float
    p99_ms: float
    lost_hit_rate: float
    lost_p99_ms: float
    replica_rate: float


def plan(model: Model, demand: Demand, routing: Routing) -> Plan:
    """The fewest replicas with which the target is kept, the spare ones lost.

    Raises:
      UnusableError: there is no such number.
    """
    needed = fewest(model, demand, routing)
    lost = model.run(demand.rate, needed, routing)
    replicas = needed + demand.spare
    full = model.run(demand.rate, replicas, routing)
    return Plan(
        routing,
        replicas,
        full.hit_rate,
        model.cpu_ms(full.hit_rate),
        model.busy(demand.rate, replicas, full.hit_rate),
        full.p99_ms,
        lost.hit_rate,
        lost.p99_ms,
        demand.rate / needed,
    )


def check_target(model: Model, demand: Demand) -> None:
    """Refuses a target that a server misses when nobody waits.

    Raises:
      UnusableError: it is one.
    """
    idle = min(model.hit.latency_ms(99), model.miss.latency_ms(99))
    if demand.p99_ms < idle:
        raise UnusableError(
            f"--sla-p99 {demand.p99_ms:g}ms: with hardly any load the p99 was {idle:.3g} ms "
            f"already ({min(model.hit.calls, model.miss.calls):,} calls), which more replicas do "
            "not lower"
        )


def fewest(model: Model, demand: Demand, routing: Routing) -> int:
    """The fewest replicas that keep the target, none to spare.

    Raises:
      UnusableError: there is no such number.
    """

    def keeps(replicas: int) -> bool:
        return model.run(demand.rate, replicas, routing).p99_ms <= demand.p99_ms

    least = max(1, ceil(model.busy(demand.rate, 1, 1.0 if model.users else 0.0)))
    enough = least
    while not keeps(enough):
        if enough >= _MOST_REPLICAS or model.busy(demand.rate, enough, 0.0) < _PRECISION:
            raise UnusableError(
                f"{routing.title}: no number of replicas keeps a p99 of {demand.p99_ms:g} ms: "
                f"with {enough:,} it is {model.run(demand.rate, enough, routing).p99_ms:.3g} ms"
            )
        least, enough = enough + 1, 2 * enough
    return _smallest(keeps, least, enough)


def highest_rate(model: Model, p99_ms: float) -> float:
    """Requests per second of one replica within the target."""
    routing = Routing("one replica")
    low, high = 0.0, 1000 * model.workers / model.hit.occupied_ms
    least = _PRECISION * high
    while high - low > (_PRECISION * high if low else least):
        middle = (low + high) / 2
        if model.run(middle, 1, routing).p99_ms <= p99_ms:
            low = middle
        else:
            high = middle
    return low


# Implementation details follow.


def _smallest(holds: Callable[[int], bool], least: int, enough: int) -> int:
    while least < enough:
        middle = (least + enough) // 2
        if holds(middle):
            enough = middle
        else:
            least = middle + 1
    return enough
