"""How long a request takes where none waits, and how much of a worker it occupies.

Both come from measurements: latencies from stretches with little load, the CPU time per request
from all. What a request occupies is its CPU time times a factor that is fitted to the stretches
under load; 1 if it occupies a worker exactly while that computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from colcast.capacity.measured import Measured, Stretch, UnusableError
from colcast.capacity.routing import Routing
from colcast.capacity.simulation import Replicas, Seconds, Work, poisson_arrivals, simulate

IDLE = 0.3  # of the workers busy: so few requests wait then
_SLOWER = 1.25  # the median of requests of which some wait, against the lowest
_STEPS = 10  # of the factor, and as many between those beside the best
_FEWEST_CALLS = 100  # of a stretch whose 99th percentile is compared
_MOST_CALLS, _REPETITIONS = 5000, 3  # that are simulated of one
_WORST = 3.0  # a p99 that is so many times off counts no more than this


@dataclass(frozen=True)
class Service:
    """A request's time.

    Attributes:
      quantiles_ms: (percentile, latency without waiting), ascending.
      calls: that they come from.
      cpu_ms: of the server per request.
      factor: times the CPU time is what a request occupies a worker.
    """

    quantiles_ms: tuple[tuple[float, float], ...]
    calls: int
    cpu_ms: float
    factor: float = 1.0

    @property
    def occupied_ms(self) -> float:
        """A worker's time per request."""
        return self.cpu_ms * self.factor

    @property
    def mean_ms(self) -> float:
        """The mean latency without waiting."""
        percentiles, milliseconds = zip(*self.quantiles_ms, strict=True)
        return float(np.interp(np.arange(0.5, 100), percentiles, milliseconds).mean())

    def latency_ms(self, percentile: float) -> float:
        """Without waiting."""
        percentiles, milliseconds = zip(*self.quantiles_ms, strict=True)
        return float(np.interp(percentile, percentiles, milliseconds))

    def work(self, percentiles: Seconds) -> Work:
        """Of requests that take as long as these percentiles of all; longer ones occupy more."""
        known, milliseconds = zip(*self.quantiles_ms, strict=True)
        latency = np.interp(percentiles, known, milliseconds) / 1000
        return Work(latency, latency / latency.mean() * self.occupied_ms / 1000)


def service_of(results: Sequence[Measured], workers: int) -> Service:
    """Of the requests of some results, which are of one kind.

    Raises:
      UnusableError: nothing was measured with little load.
    """
    stretches = [one for result in results for one in result.stretches]
    idle = _idle(stretches, workers)
    cpu_ms = _weighted([one.cpu_ms for one in stretches], stretches)
    if not idle:
        least = min(stretches, key=lambda one: one.rate)
        raise UnusableError(
            f"{results[0].source}: measured only with {100 * least.busy(workers):.0f} % of the "
            "workers busy and more, so that the time without waiting is not known; give a result "
            "of colcast loadtest --clients 1, too"
        )
    merged = _merged(idle)
    return Service(merged.quantiles_ms, merged.calls, cpu_ms)


@dataclass(frozen=True)
class Comparison:
    """A stretch under load beside its simulation; p99 in milliseconds."""

    rate: float
    measured_ms: float
    simulated_ms: float


def fitted(
    service: Service, results: Sequence[Measured], workers: int
) -> tuple[Service, list[Comparison]]:
    """The service with the factor at which simulated p99s are nearest to those under load.

    Returns:
      It, and what was compared; with nothing to compare the factor stays 1.
    """
    stretches = [one for result in results for one in result.stretches]
    idle = _idle(stretches, workers)
    loaded = _by_rate([one for one in stretches if not one.clients and one not in idle])
    loaded = [one for one in loaded if one.calls >= _FEWEST_CALLS]
    if not loaded:
        return service, []

    def error(factor: float) -> float:
        compared = _compared(replace(service, factor=factor), loaded, workers)
        ratios = [abs(np.log(one.simulated_ms / one.measured_ms)) for one in compared]
        return float(np.minimum(ratios, np.log(_WORST)).sum())

    low, high = 0.25, max(4.0, 1.25 * service.mean_ms / service.cpu_ms)
    for _ in range(2):
        factors = np.geomspace(low, high, _STEPS)
        place = int(np.argmin([error(factor) for factor in factors]))
        low, high = factors[max(place - 1, 0)], factors[min(place + 1, _STEPS - 1)]
    best = replace(service, factor=float(factors[place]))
    return best, _compared(best, loaded, workers)


# Implementation details follow.


def _idle(stretches: Sequence[Stretch], workers: int) -> list[Stretch]:
    """Those in which hardly any request waited: of few clients, or else of a low rate."""
    if alone := [one for one in stretches if 0 < one.clients <= workers]:
        return alone
    found = [one for one in stretches if not one.clients and one.busy(workers) <= IDLE]
    lowest = min((one.median_ms for one in found), default=0.0)
    return [one for one in found if one.median_ms <= _SLOWER * lowest]


def _by_rate(stretches: Sequence[Stretch]) -> list[Stretch]:
    """One per rate."""
    rates = sorted({one.rate for one in stretches})
    return [_merged([one for one in stretches if one.rate == rate]) for rate in rates]


def _merged(stretches: Sequence[Stretch]) -> Stretch:
    """One in place of several; a percentile is the mean of theirs."""
    percentiles = [percentile for percentile, _ in stretches[0].quantiles_ms]
    quantiles = [
        (percentile, _weighted([one.quantiles_ms[place][1] for one in stretches], stretches))
        for place, percentile in enumerate(percentiles)
    ]
    calls = sum(one.calls for one in stretches)
    cpu_ms = _weighted([one.cpu_ms for one in stretches], stretches)
    return replace(stretches[0], calls=calls, cpu_ms=cpu_ms, quantiles_ms=tuple(quantiles))


def _weighted(values: Sequence[float], stretches: Sequence[Stretch]) -> float:
    return float(np.average(values, weights=[one.calls for one in stretches]))


def _compared(service: Service, loaded: Sequence[Stretch], workers: int) -> list[Comparison]:
    return [
        Comparison(one.rate, dict(one.quantiles_ms)[99.0], _p99_ms(service, one, workers))
        for one in loaded
    ]


def _p99_ms(service: Service, stretch: Stretch, workers: int) -> float:
    """Of as many calls as were measured, which matters where the queue grows."""
    calls = min(stretch.calls, _MOST_CALLS)
    users = np.zeros(calls, np.int64)
    found = []
    for seed in range(_REPETITIONS):
        work = service.work(np.random.default_rng([seed, 1]).random(calls) * 100)
        arrivals = poisson_arrivals(stretch.rate, calls, seed)
        one = simulate(arrivals, users, Routing(""), Replicas(1, workers), work, work)
        found.append(one.p99_ms)
    return float(np.median(found))
