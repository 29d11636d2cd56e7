"""Proves that a late signature answers like the columnar one.

export/trials/_parity.py proves that the columnar signature answers like the original.
"""

from collections.abc import Mapping
from functools import cached_property

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

_ROUNDS = 4  # requests for each number of candidates
_TIMED_ROWS = 100


class Proof:
    """Compares signatures with a columnar one on the same random requests."""

    def __init__(self, columnar: Probe, requests: Requests) -> None:
        """Creates a proof.

        Args:
            columnar: runs the columnar signature's outputs.
            requests: draws requests.
        """
        self._columnar, self._requests = columnar, requests

    @cached_property
    def _asked(self) -> "list[_Asked]":
        return [
            _Asked(self._columnar, self._requests.draw(rows), rows, self._requests.answer)
            for rows in PROOF_ROWS
            for _ in range(_ROUNDS)
        ]

    @cached_property
    def timed(self) -> Request:
        return self._requests.draw(_TIMED_ROWS)

    def compare(self, late: Probe, tolerance: float, suspect: str) -> tuple[Differences, Moderated]:
        """Compares a signature with the columnar one.

        The difference of floats is relative to the value or to the output's median absolute value
        over all requests, whichever is larger, so that a logit near zero does not count more than
        others. Differences that rounding the inputs would also cause do not count: if large numbers
        cancel each other, no exact digits remain to compare. Outputs other than floats must be
        equal; with a tolerance of 0, floats must be equal, too.

        Args:
            late: runs the late signature's outputs.
            tolerance: the largest relative difference allowed.
            suspect: the frontier tensor accepted last, for the error message.

        Returns:
            The differences and, separately, the differences that appear only with large floats.

        Raises:
            ExportError: a difference is too large, or the columnar signature differs from itself.
        """
        trials = [asked.trial(late, noisy=tolerance > 0) for asked in self._asked]
        moderated: Moderated = {}
        try:
            return compare_trials(trials, tolerance, moderated), moderated
        except ExportError as error:
            raise ExportError(
                f"late expansion fails its proof: {error}; frontier tensor last accepted:"
                f" {suspect}. If that is the model's own rounding, as in half precision, allow it"
                " with --max-relative-difference or leave out --late"
            ) from error


class _Asked:
    """A request and the columnar signature's answer."""

    def __init__(
        self, columnar: Probe, request: Request, rows: int, expected: Mapping[str, Array]
    ) -> None:
        self._columnar, self._request, self._rows = columnar, request, rows
        self._expected, again = expected, columnar(request.repeated(rows))
        for output, value in self._expected.items():
            if value.shape != again[output].shape or not _equal(value, again[output]):
                raise ExportError(
                    f"late expansion cannot be proven: output {output!r} of the columnar signature"
                    " differs between two runs on the same request (a random op in the model?)"
                )

    @cached_property
    def _noise(self) -> Mapping[str, Array]:
        return rounding_noise(
            lambda perturbed: self._columnar(perturbed.repeated(self._rows)),
            self._request,
            self._expected,
            PERTURBED,
        )

    def trial(self, late: Probe, *, noisy: bool) -> Trial:
        """Runs the late signature on the request; returns both answers for comparison."""

        def moderate() -> Trial:
            small = self._request.moderate()
            expected = self._columnar(small.repeated(self._rows))
            return _Asked(self._columnar, small, self._rows, expected).trial(late, noisy=True)

        given = late(self._request.once())
        if noisy:
            return Trial(self._rows, self._expected, given, self._noise, moderate)
        noise = {output: np.zeros(value.shape) for output, value in self._expected.items()}
        return Trial(self._rows, self._expected, given, noise)


def _equal(one: Array, other: Array) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
