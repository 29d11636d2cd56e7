"""The proof that a late signature gives what the columnar one gives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from colcast.export._errors import ExportError
from colcast.export.late._findings import Probe
from colcast.export.late._requests import Array, Request, Requests

PROOF_ROWS = (1, 2, 7, 64)
"""Numbers of candidates that are tried."""

_ROUNDS = 3  # users tried at each number of candidates

Differences = dict[int, dict[str, float]]
"""Number of candidates, output: the largest relative difference."""


@dataclass(frozen=True)
class _Trial:
    rows: int
    expected: dict[str, Array]
    given: dict[str, Array]


def prove(
    columnar: Probe, late: Probe, requests: Requests, tolerance: float, suspect: str
) -> Differences:
    """Compares the two signatures on random requests.

    A difference of floats is taken relative to the value or to the output's median absolute value
    over all requests, whichever is larger, so that a logit that happens to be next to zero does
    not count for more than its neighbours. Everything else has to be equal.

    Args:
        columnar: runs the outputs of the columnar signature.
        late: the same outputs of the late one.
        requests: where requests come from.
        tolerance: the largest relative difference allowed.
        suspect: the frontier tensor last accepted, for the message.

    Raises:
        ExportError: a difference is larger; or the columnar signature is not even equal to itself.
    """
    trials = []
    for rows in PROOF_ROWS:
        for _ in range(_ROUNDS):
            request = requests.draw(rows)
            expected = columnar(request.repeated(rows))
            _check_repeatable(columnar, request, rows, expected)
            trials.append(_Trial(rows, expected, late(request.once())))
    differences: Differences = {rows: {} for rows in PROOF_ROWS}
    for output in trials[0].expected:
        floor = _floor([trial.expected[output] for trial in trials])
        for trial in trials:
            worst = _compare(output, trial, floor, tolerance, suspect)
            seen = differences[trial.rows]
            seen[output] = max(seen.get(output, 0.0), worst)
    return differences


def relative_difference(expected: Array, given: Array, floor: float) -> Array:
    """|expected - given| / max(|expected|, floor), 0 where both are the same inf or NaN."""
    if expected.dtype.kind not in "fc":
        return np.where(expected == given, 0.0, np.inf)
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.abs(expected - given) / np.maximum(np.abs(expected), floor)
    return np.where(same, 0.0, np.where(np.isnan(relative), np.inf, relative))


def _check_repeatable(
    columnar: Probe, request: Request, rows: int, expected: dict[str, Array]
) -> None:
    again = columnar(request.repeated(rows))
    for output, value in expected.items():
        if (
            value.shape != again[output].shape
            or relative_difference(value.astype(value.dtype), again[output], 0.0).any()
        ):
            raise ExportError(
                f"late expansion cannot be proven: output {output!r} of the columnar signature"
                " differs between two runs on the same request (a random op in the model?)"
            )


def _floor(values: Sequence[Array]) -> float:
    whole = np.concatenate([value.reshape(-1) for value in values])
    if whole.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(whole[np.isfinite(whole)])
    return float(np.median(finite)) if finite.size else 0.0


def _compare(output: str, trial: _Trial, floor: float, tolerance: float, suspect: str) -> float:
    expected, given = trial.expected[output], trial.given[output]
    if expected.shape != given.shape or expected.dtype != given.dtype:
        raise ExportError(
            f"late expansion fails its proof: output {output!r} at {trial.rows} candidates is"
            f" {given.dtype} {list(given.shape)}, expected {expected.dtype}"
            f" {list(expected.shape)}; frontier tensor last accepted: {suspect}"
        )
    relative = relative_difference(expected, given, floor)
    worst = float(relative.max(initial=0.0))
    if worst > tolerance:
        at = np.unravel_index(int(relative.argmax()), relative.shape)
        row = at[0] if at else 0
        raise ExportError(
            f"late expansion fails its proof: output {output!r}, row {row} of {trial.rows}, is"
            f" {given[at]}, expected {expected[at]} (relative difference {worst:.2g}, tolerance"
            f" {tolerance:g}); frontier tensor last accepted: {suspect}"
        )
    return worst
