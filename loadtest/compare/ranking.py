"""How far two orders of the same candidates agree."""

from typing import Any

import numpy as np


def overlap(one: Any, two: Any, k: int) -> float:
    """The share of the k highest scores that are the same candidates'; NaN is lowest."""
    return len(np.intersect1d(_top(one, k), _top(two, k))) / k


def correlation(one: Any, two: Any) -> float:
    """Spearman's rank correlation; equal scores share the mean of their ranks, NaN is lowest.

    1 where both order alike, if that is not at all; 0 where one of them does not tell candidates
    apart and the other does.
    """
    first, second = _centred_ranks(one), _centred_ranks(two)
    if np.array_equal(first, second):
        return 1.0
    length = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / length) if length else 0.0


def _top(scores: Any, k: int) -> Any:
    return np.argsort(-_comparable(scores), kind="stable")[:k]


def _centred_ranks(scores: Any) -> Any:
    _, place, counts = np.unique(_comparable(scores), return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place] - (len(scores) + 1) / 2


def _comparable(scores: Any) -> Any:
    wide = np.asarray(scores, np.float64)
    return np.where(np.isnan(wide), -np.inf, wide)
