"""Measures how far two orders of the same candidates agree."""

from typing import Any

import numpy as np


def overlap(one: Any, two: Any, k: int) -> float:
    """The share of candidates that are among the k highest scores of both; NaN ranks lowest."""
    return len(np.intersect1d(_top(one, k), _top(two, k))) / k


def correlation(one: Any, two: Any) -> float:
    """Spearman's rank correlation; equal scores share the mean of their ranks, NaN ranks lowest.

    1 if the orders are equal, also if neither ranks any candidate above another; 0 if only one of
    them does.
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
