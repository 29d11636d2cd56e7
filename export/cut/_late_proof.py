"""Proves that a late signature answers like the columnar one.

export/trials/_parity.py proves that the columnar signature answers like the original.
"""

from collections.abc import Mapping
from functools import cache, cached_property

from colcast.export.graph._comparison import (
    PROOF_ROWS,
    Differences,
    DiffersError,
    Moderated,
    Trial,
    compare_trials,
    difference,
    rounding_noise,
)
from colcast.export.graph._errors import ExportError
from colcast.export.graph._probe import Probe
from colcast.export.graph._sessions import Array
from colcast.export.trials._requests import Requests
from colcast.export.trials._rows import Rows

# Candidates per trial request. Each request is also tried with fewer of them.
_DRAWN = (64, 7, 64, 2)
_TIMED_ROWS = 100
_OF_FLOATS = (
    "If that is the model's own rounding, as in half precision, allow it with"
    " --max-relative-difference or leave out --late"
)
_OF_INTEGERS = (
    "If it ranks or rounds scores, their last bits decide it: leave it out of the signature, and"
    " rank in the client, or leave out --late"
)


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
    def _asked(self) -> list[tuple[Rows, Mapping[str, Array]]]:
        """Requests and the columnar signature's answers."""
        asked = []
        for most in _DRAWN:
            request = self._requests.draw(most, PROOF_ROWS)
            answers = self._requests.answers
            _check_steady(answers[most], self._columnar(request.columns()))
            asked += [(request[:rows], answers[rows]) for rows in PROOF_ROWS if rows <= most]
        return asked

    @cached_property
    def timed(self) -> Rows:
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
        trials = [self._trial(*asked, late, noisy=tolerance > 0) for asked in self._asked]
        moderated: Moderated = {}
        try:
            return compare_trials(trials, tolerance, moderated), moderated
        except DiffersError as error:
            raise DiffersError(
                f"late expansion fails its proof: {error}; frontier tensor last accepted:"
                f" {suspect}. {_OF_INTEGERS if error.exact else _OF_FLOATS}",
                exact=error.exact,
            ) from error

    def _trial(
        self, request: Rows, expected: Mapping[str, Array], late: Probe, *, noisy: bool
    ) -> Trial:
        """Runs the late signature on the request; returns both answers for comparison."""

        @cache
        def noise() -> Mapping[str, Array]:
            return rounding_noise(
                lambda random: self._columnar(request.rounded(random).columns()), expected
            )

        def moderate() -> Trial:
            small = request.moderate()
            return self._trial(small, self._columnar(small.columns()), late, noisy=True)

        given = late(request.once())
        if noisy:
            return Trial(len(request), expected, given, noise, moderate)
        return Trial(len(request), expected, given)


def _check_steady(answer: Mapping[str, Array], again: Mapping[str, Array]) -> None:
    for output, value in answer.items():
        if difference(value, again[output]).any():
            raise ExportError(
                f"late expansion cannot be proven: output {output!r} of the columnar signature"
                " differs between two runs on the same request (a random op in the model?)"
            )
