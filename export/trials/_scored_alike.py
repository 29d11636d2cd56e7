"""Decides whether a signature scores candidates the same together and separately."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._comparison import CANCELLED, relative_difference
from colcast.export.graph._errors import ExportError
from colcast.export.trials._rows import Rows

Run = Callable[[Rows], Mapping[str, Any]]
Scale = Callable[[Any], Any]

_ALONE = 4  # rows with the shortest lists that are scored alone


def scored_alike(run: Run, rows: Rows, tolerance: float) -> bool | None:
    """Whether candidates score the same together, alone, reordered and in slices.

    Large floats that nearly cancel out leave only rounding errors, which hide what smaller ones
    show, so rows must also agree with small floats.

    Args:
        run: runs the signature on rows of one request.
        rows: rows of one request, which the model accepts.
        tolerance: largest difference of floats, relative to an output's largest value or 1, because
            small values may be what remains of large ones. With small floats it is relative to the
            output's median.

    Returns:
        None if the model refuses some of the candidates.
    """
    try:
        if _largest_difference(run, rows, np.max) > max(tolerance, CANCELLED):
            return False
        return bool(_largest_difference(run, rows.moderate(), np.median) <= tolerance)
    except (ExportError, tf.errors.OpError):
        return None


def _largest_difference(run: Run, rows: Rows, scale: Scale) -> float:
    """How far scores together and separately differ; infinite if their shapes do."""
    together = run(rows)
    worst = 0.0
    for own in _pieces(rows):
        apart = run(rows.take(own))
        for output, whole in together.items():
            given, expected = np.asarray(apart[output]), np.asarray(whole)
            if expected.shape[:1] != (len(rows),) or given.shape != expected[own].shape:
                return np.inf
            floor = _scale(expected, scale)
            worst = max(worst, relative_difference(expected[own], given, floor, 0.0).max(initial=0))
    return worst


def _pieces(rows: Rows) -> list[Any]:
    """Groups of rows to score separately: shuffled, short lists, long lists, single rows."""
    count = len(rows)
    order = np.random.default_rng(count).permutation(count)
    values = sum(np.maximum(of.counts, 0) for of in rows.cells.values())
    thirds = min(count, 3)
    pieces, alone = np.array_split(order, thirds), [*order[:1]]
    if np.ptp(values):
        by_length = np.argsort(values, kind="stable")
        pieces += np.array_split(by_length, thirds)
        alone = [*by_length[:_ALONE], *by_length[-1:], *alone]
    return [*pieces, *(np.array([row]) for row in dict.fromkeys(alone))]


def _scale(values: Any, scale: Scale) -> float:
    """The scale to which an output's differences are relative."""
    if values.dtype.kind not in "fc":
        return 1.0
    finite = np.abs(values[np.isfinite(values)])
    return max(1.0, float(scale(finite))) if finite.size else 1.0
