"""The proof that a late signature answers as the columnar one does."""

import numpy as np
from colcast.export.graph._comparison import (
    PERTURBED,
    PROOF_ROWS,
    Differences,
    Moderated,
    Trial,
    compare_trials,
    rounding_noise,
)
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Probe
from colcast.export.graph._requests import Array, Request, Requests

_ROUNDS = 4  # requests tried at each number of candidates


def prove(
    columnar: Probe, late: Probe, requests: Requests, tolerance: float, suspect: str
) -> tuple[Differences, Moderated]:
    """Compares the two signatures on random requests.

    A difference of floats is taken relative to the value or to the output's median absolute value
    over all requests, whichever is larger, so that a logit that happens to be next to zero does
    not count for more than its neighbours. What rounding the inputs would change as well is no
    difference: large numbers that cancel each other leave no exact digits to compare. Everything
    else has to be equal, and with a tolerance of 0 everything.

    Args:
        columnar: runs the outputs of the columnar signature.
        late: runs those of the late one.
        requests: where requests come from.
        tolerance: the largest relative difference allowed.
        suspect: the frontier tensor last accepted, for the message.

    Returns:
        The differences, and those that only show on large floats, which are not among them.

    Raises:
        ExportError: a difference is larger; or the columnar signature is not even equal to itself.
    """
    trials = [
        _try(columnar, late, requests.draw(rows), rows, PERTURBED if tolerance else 0)
        for rows in PROOF_ROWS
        for _ in range(_ROUNDS)
    ]
    moderated: Moderated = {}
    try:
        return compare_trials(trials, tolerance, moderated), moderated
    except ExportError as error:
        raise ExportError(
            f"late expansion fails its proof: {error}; frontier tensor last accepted: {suspect}. If"
            " that is the model's own rounding, as in half precision, allow it with --tolerance or"
            " leave out --late"
        ) from error


def _try(columnar: Probe, late: Probe, request: Request, rows: int, noisy_runs: int) -> Trial:
    columns = request.repeated(rows)
    expected, again = columnar(columns), columnar(columns)
    for output, value in expected.items():
        if value.shape != again[output].shape or not _equal(value, again[output]):
            raise ExportError(
                f"late expansion cannot be proven: output {output!r} of the columnar signature"
                " differs between two runs on the same request (a random op in the model?)"
            )
    noise = rounding_noise(
        lambda perturbed: columnar(perturbed.repeated(rows)), request, expected, noisy_runs
    )

    def moderate() -> Trial:
        return _try(columnar, late, request.moderate(), rows, noisy_runs)

    return Trial(rows, expected, late(request.once()), noise, moderate if noisy_runs else None)


def _equal(one: Array, other: Array) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
