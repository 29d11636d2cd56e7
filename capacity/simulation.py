"""Replicas with a queue and users' states each, request by request."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
import numpy.typing as npt
from colcast.capacity.routing import Routing
from colcast.capacity.state_cache import StateCache
from colcast.capacity.users import Users

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """What each request would take, in seconds.

    Attributes:
      latency: from where a worker takes it to its answer.
      occupied: of that worker.
    """

    latency: Seconds
    occupied: Seconds


@dataclass(frozen=True)
class Replicas:
    """Equal replicas.

    Attributes:
      count: of them.
      workers: of each; a request occupies one.
      states: that each can keep; None: whether a user is known makes no difference.
    """

    count: int
    workers: int
    states: int | None = None


@dataclass(frozen=True)
class Outcome:
    """Of each request, in order of arrival: seconds to its answer, whether its user was found, and
    the replica it went to.
    """

    seconds: Seconds
    found: npt.NDArray[np.bool_]
    replica: npt.NDArray[np.int64]

    def after(self, requests: int) -> "Outcome":
        """Without the first ones, which fill the caches."""
        return Outcome(self.seconds[requests:], self.found[requests:], self.replica[requests:])

    @property
    def p99_ms(self) -> float:
        """Milliseconds."""
        return 1000 * float(np.percentile(self.seconds, 99, method="higher"))

    @property
    def hit_rate(self) -> float:
        """The share of requests whose user was found."""
        return float(self.found.mean())


def simulate(
    arrivals: Sequence[float] | None,
    users: Users,
    routing: Routing,
    replicas: Replicas,
    hit: Work,
    miss: Work,
    clients: int = 0,
) -> Outcome:
    """Runs requests through queues, first come, first served.

    Args:
      arrivals: when each comes, in seconds and in order; None: `clients` wait for their answers.
      users: whose each is.
      routing: how they are divided.
      replicas: among whom.
      hit: what each takes if its user is known.
      miss: and if not.
      clients: how many that each send the next request when theirs is answered.
    """
    choose = routing.among(replicas.count, users)
    caches = [StateCache(replicas.states or 0) for _ in range(replicas.count)]
    free = [[0.0] * replicas.workers for _ in range(replicas.count)]  # when workers will be
    for workers in free:
        heapify(workers)
    answers: list[tuple[float, int]] = []  # of what is in flight: when, and by which replica
    in_flight = [0] * replicas.count
    works = [(one.latency.tolist(), one.occupied.tolist()) for one in (miss, hit)]
    times = None if arrivals is None else list(arrivals)
    seconds, found_all, replica_all = [], [], []
    now = 0.0
    for number, user in enumerate(users.tolist()):
        if times is not None:
            now = times[number]
        elif len(answers) == clients:
            now = answers[0][0]
        while answers and answers[0][0] <= now:
            in_flight[heappop(answers)[1]] -= 1
        replica = choose(number, in_flight)
        found = caches[replica].find(user) if replicas.states is not None else False
        latency, occupied = works[found]
        start = max(now, free[replica][0])
        heapreplace(free[replica], start + occupied[number])
        answered = start + latency[number]
        heappush(answers, (answered, replica))
        in_flight[replica] += 1
        seconds.append(answered - now)
        found_all.append(found)
        replica_all.append(replica)
    return Outcome(np.array(seconds), np.array(found_all, bool), np.array(replica_all))


def poisson_arrivals(rate: float, requests: int, seed: int) -> list[float]:
    """When so many requests come at a rate; another rate has the same gaps, stretched."""
    gaps = np.random.default_rng(seed).exponential(1.0, requests)
    arrivals: list[float] = (np.cumsum(gaps) / rate).tolist()
    return arrivals
