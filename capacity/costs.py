"""What requests of known and of unknown users cost, from results of each kind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from colcast.capacity.measured import Measured, UnusableError
from colcast.capacity.service import Comparison, Service, fitted, service_of

_NEARLY_NONE, _NEARLY_ALL = 0.1, 0.9


@dataclass(frozen=True)
class Costs:
    """Of both kinds of request.

    Attributes:
      hit: its user is known.
      miss: its user is not.
      measured_shares: of users found, each in some result; empty if nobody counted.
      comparisons: what the load of the results was, and what is simulated of it.
      notes: what is not as measured.
    """

    hit: Service
    miss: Service
    measured_shares: tuple[float, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


def costs_of(results: Sequence[Measured], workers: int, *, by_user: bool) -> Costs:
    """Reads the costs from results.

    Args:
      results: of one server's settings, under loads with known users, unknown ones, or both.
      workers: of the server.
      by_user: whether hits and misses are told apart; otherwise all requests are as measured.

    Raises:
      UnusableError: what is asked for was not measured.
    """
    shares = tuple(one.users_found for one in results if one.users_found is not None)
    if not by_user:
        service, comparisons, notes = _fitted(results, workers)
        return Costs(service, service, shares, tuple(comparisons), tuple(notes))
    hits, misses = _apart(results)
    if not misses:
        raise UnusableError(
            f"{hits[0].source}: {100 * (hits[0].users_found or 0):.0f} % of its users were known, "
            "so that the cost of a miss is not known; give a result with users that do "
            "not come again, too (colcast loadtest --distinct, more than the server keeps)"
        )
    miss, comparisons, notes = _fitted(misses, workers)
    if not hits:
        notes.append("no result has known users: a hit is taken to cost what a miss costs")
        return Costs(miss, miss, shares, tuple(comparisons), tuple(notes))
    hit, more, hit_notes = _fitted(hits, workers)
    if not more and comparisons:
        hit, hit_notes = replace(hit, factor=miss.factor), ["hits: the factor is that of misses"]
    return Costs(hit, miss, shares, (*comparisons, *more), (*notes, *hit_notes))


# Implementation details follow.


def _apart(results: Sequence[Measured]) -> tuple[list[Measured], list[Measured]]:
    """Those with known users, and those without."""
    hits, misses = [], []
    for one in results:
        if one.users_found is None:
            raise UnusableError(
                f"{one.source}: whether its users were known was not counted; measure with "
                "--metrics URL, or say so with --found, 0 to 1, once per result"
            )
        if one.users_found >= _NEARLY_ALL:
            hits.append(one)
        elif one.users_found <= _NEARLY_NONE:
            misses.append(one)
        else:
            raise UnusableError(
                f"{one.source}: {100 * one.users_found:.0f} % of its users were known, so that it "
                f"says what neither costs; expected at most {100 * _NEARLY_NONE:.0f} % or at least "
                f"{100 * _NEARLY_ALL:.0f} %"
            )
    return hits, misses


def _fitted(
    results: Sequence[Measured], workers: int
) -> tuple[Service, list[Comparison], list[str]]:
    service, comparisons = fitted(service_of(results, workers), results, workers)
    notes = []
    if not comparisons:
        names = ", ".join(str(one.source) for one in results)
        notes.append(f"{names}: not measured under load: a request is taken to occupy its CPU time")
    return service, comparisons, notes
