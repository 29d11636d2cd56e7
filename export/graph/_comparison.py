"""Measures how far a new signature's outputs differ from the model's on the same requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from colcast.export.graph._errors import ExportError
from colcast.export.graph._sessions import Array

PROOF_ROWS = (1, 2, 7, 64)
"""The numbers of candidates in trials."""

_PERTURBED = 3  # runs with rounded inputs for each request

CANCELLED = 1e-2
"""Relative differences below this may be rounding errors where large floats cancel out."""

_NOISE_FACTOR = 4  # reordered sums change outputs more than rounded inputs do

Differences = dict[int, dict[str, float]]
"""Number of candidates -> output -> the largest relative difference."""

Moderated = dict[str, float]
"""Output -> the largest relative difference that disappears once a request's floats are small."""


class DiffersError(ExportError):
    """An output differs.

    Attributes:
        exact: whether its dtype allows no difference.
    """

    def __init__(self, message: str, *, exact: bool) -> None:
        super().__init__(message)
        self.exact = exact


@dataclass(frozen=True)
class Trial:
    """One request and the outputs to compare.

    Attributes:
        rows: number of candidates.
        expected: the model's outputs.
        given: the new signature's outputs.
        noise: measures how much the outputs change if the inputs are rounded; None if they must be
            equal.
        moderate: repeats the trial with small floats, if possible.
    """

    rows: int
    expected: Mapping[str, Array]
    given: Mapping[str, Array]
    noise: Callable[[], Mapping[str, Array]] | None = None
    moderate: "Callable[[], Trial] | None" = None


def compare_trials(
    trials: Sequence[Trial], tolerance: float, moderated: Moderated | None = None
) -> Differences:
    """Returns the largest differences.

    If a trial agrees only with small floats, its difference goes into `moderated`.

    Raises:
        ExportError: a difference exceeds the tolerance; names the output, the row and the values.
    """
    differences: Differences = {trial.rows: {} for trial in trials}
    moderated = {} if moderated is None else moderated
    for output in trials[0].expected:
        floor = _floor([trial.expected[output] for trial in trials])
        for trial in trials:
            worst = _compare(output, trial, floor, tolerance, moderated)
            seen = differences[trial.rows]
            seen[output] = max(seen.get(output, 0.0), worst)
    return differences


def comparable(value: object) -> Array:
    """A value as an array; bfloat16, which NumPy does not treat as a float, becomes float32."""
    array = np.asarray(value)
    known = array.dtype.kind != "V"  # faster than looking up the dtype's name
    return array if known or array.dtype.name != "bfloat16" else array.astype(np.float32)


def difference(expected: Array, given: Array) -> Array:
    """How far each entry is from the expected one; a single infinity if shapes or dtypes differ.

    It is 0 for equal entries (NaN to NaN), and infinite where unequal entries are not two numbers.
    """
    if expected.shape != given.shape or expected.dtype != given.dtype:
        return np.array(np.inf)
    if expected.dtype.kind not in "fc":
        return np.where(expected == given, 0.0, np.inf)
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    with np.errstate(invalid="ignore"):
        apart = np.abs(expected - given)
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def relative_difference(
    expected: Array, given: Array, floor: float, noise: Array | float = 0.0
) -> Array:
    """The `difference` beyond `noise`, relative to max(|expected|, floor)."""
    apart = difference(expected, given)
    if expected.dtype.kind not in "fc" or not apart.any():
        return apart
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = np.maximum(apart - noise, 0.0)
        relative = beyond / np.maximum(np.abs(expected), floor)
    return np.where(beyond == 0.0, 0.0, np.where(np.isnan(relative), np.inf, relative))


def rounding_noise(
    run: Callable[[np.random.Generator], Mapping[str, Array]], expected: Mapping[str, Array]
) -> dict[str, Array]:
    """How much the outputs change if the last bits of the float inputs change.

    Args:
        run: answers the request with its inputs changed at random.
        expected: the answer to the request itself.
    """
    noise = {output: np.zeros(value.shape) for output, value in expected.items()}
    random = np.random.default_rng(0)
    for _ in range(_PERTURBED):
        perturbed = run(random)
        for output, value in expected.items():
            if value.dtype.kind in "fc" and perturbed[output].shape == value.shape:
                with np.errstate(invalid="ignore"):
                    change = np.nan_to_num(np.abs(perturbed[output] - value), nan=0.0, posinf=0.0)
                noise[output] = np.maximum(noise[output], _NOISE_FACTOR * change)
    return noise


def _floor(values: Sequence[Array]) -> float:
    whole = np.concatenate([value.reshape(-1) for value in values])
    if whole.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(whole[np.isfinite(whole)])
    return float(np.median(finite)) if finite.size else 0.0


def _compare(
    output: str, trial: Trial, floor: float, tolerance: float, moderated: Moderated
) -> float:
    expected, given = trial.expected[output], trial.given[output]
    if expected.shape != given.shape or expected.dtype != given.dtype:
        raise DiffersError(
            f"output {output!r} at {trial.rows} candidates is {given.dtype} {list(given.shape)},"
            f" expected {expected.dtype} {list(expected.shape)}",
            exact=False,
        )
    relative = relative_difference(expected, given, floor)
    if trial.noise and relative.max(initial=0.0) > tolerance:
        relative = relative_difference(expected, given, floor, trial.noise()[output])
    worst = float(relative.max(initial=0.0))
    if tolerance < worst < CANCELLED and trial.moderate:
        # If large floats nearly cancel out, only rounding errors remain, so compare small floats.
        again = replace(trial.moderate(), moderate=None)
        small = _compare(output, again, _floor([again.expected[output]]), tolerance, moderated)
        moderated[output] = max(moderated.get(output, 0.0), worst)
        return small
    if worst > tolerance:
        at = np.unravel_index(int(relative.argmax()), relative.shape)
        row = at[0] if at else 0
        exact = expected.dtype.kind not in "fc"
        why = (
            f"values of type {expected.dtype} must be equal"
            if exact
            else f"relative difference {worst:.2g}, tolerance {tolerance:g}"
        )
        raise DiffersError(
            f"output {output!r}, row {row} of {trial.rows}, is {given[at]}, expected {expected[at]}"
            f" ({why}){non_finite_hint(expected, given)}",
            exact=exact,
        )
    return worst


def non_finite_hint(*values: Any) -> str:
    """The end of a message about differing values; "" if all values are finite."""
    if all_finite(*values):
        return ""
    return (
        "; some are NaN or infinite, because generated rows may be outside the model's range:"
        " record requests and name them with --examples"
    )


def all_finite(*values: Any) -> bool:
    arrays = [np.asarray(value) for value in values]
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind in "fc")


def redraw_note(values: Mapping[str, str] | None) -> str:
    """A note about features whose values were redrawn because of NaN or infinite scores.

    Args:
      values: a description of the new values by feature; None if no draw gave finite scores.
    """
    if values is None:
        return (
            "some generated rows get NaN or infinite scores, and no values were found that do not:"
            " record requests and name them with --examples"
        )
    if not values:
        return ""
    drawn = ", ".join(f"{name} ({of})" for name, of in values.items())
    return f"redrawn, because other generated values get NaN or infinite scores: {drawn}"
