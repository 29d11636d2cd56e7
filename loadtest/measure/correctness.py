"""Compares answers under load with answers before the load, and the rankings of two answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.client import DecodeError, Tls
from colcast.loadtest.measure.recording import Sample
from colcast.loadtest.send.connection import PREDICT, Answer, Connection, Outputs, Request

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Check:
    """The result of checking a run's samples.

    Attributes:
      checked: the number of compared answers.
      wrong: the number of answers that differ by more than the tolerance.
      largest: the largest relative difference; infinite if the forms of the answers differ.
    """

    checked: int
    wrong: int
    largest: float


class Refused(RuntimeError):
    """A server refused a request that was sent alone."""


def answers_in_peace(
    address: str, requests: Sequence[Request], tls: Tls | None = None
) -> list[Answer]:
    """The answers, including refusals, to all requests, sent one after another."""
    with Connection(address, timeout_seconds=_TIMEOUT_SECONDS, tls=tls) as connection:
        return [connection.call(request) for request in requests]


def reference_answers(
    address: str, requests: Sequence[Request], tls: Tls | None = None
) -> list[Outputs]:
    """The outputs of every request, sent one after another.

    Raises:
      Refused: the server refuses a request.
    """
    answers = answers_in_peace(address, requests, tls)
    for number, answer in enumerate(answers):
        if answer.code != "OK":
            raise Refused(f"request {number} is refused, {answer.code}: {answer.message}")
    return [
        request.decode(answer.response) for request, answer in zip(requests, answers, strict=True)
    ]


def predicts(requests: Sequence[Request]) -> bool:
    """Whether the requests call Predict; all requests of a series call the same method."""
    return requests[0].method == PREDICT


def expected_answers(
    requests: Sequence[Request], own: list[Outputs], first: list[Outputs]
) -> list[Outputs]:
    """The answers that a format must give under load: the first format's.

    Regress and Classify run a different signature from Predict. If its outputs have other names,
    the format must give its own answers from before the load.
    """
    if not predicts(requests) and own[0].keys() != first[0].keys():
        return own
    return first


def check(
    samples: Sequence[Sample],
    requests: Sequence[Request],
    expected: Sequence[Outputs],
    tolerance: float,
) -> Check:
    """Compares sampled answers with the expected answers to their requests."""
    differences = [
        _sample_difference(requests[sample.request], sample.response, expected[sample.request])
        for sample in samples
    ]
    wrong = sum(difference > tolerance for difference in differences)
    return Check(len(samples), wrong, max(differences, default=0.0))


def outputs_difference(expected: Outputs, got: Outputs) -> float:
    """The largest difference in two answers, as a share of the output's largest value.

    NaN equals NaN. A different shape, dtype, string or integer, a missing output, or a number
    instead of NaN counts as infinite.
    """
    if expected.keys() != got.keys():
        return float("inf")
    return max(relative_difference(values, got[name]) for name, values in expected.items())


def differences(expected: Any, got: Any) -> Any:
    """The absolute difference of each value of two outputs with the same shape and dtype.

    NaN equals NaN. A different string, or a number instead of NaN, counts as infinite.
    """
    if expected.dtype == object:
        return np.where(expected == got, 0.0, np.inf)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        wide = np.abs(np.asarray(expected, np.complex128) - np.asarray(got, np.complex128))
    same = (np.isnan(expected) & np.isnan(got)) | (expected == got)
    return np.where(same, 0.0, np.nan_to_num(wide, nan=np.inf, posinf=np.inf))


def _sample_difference(request: Request, response: bytes, expected: Outputs) -> float:
    try:
        return outputs_difference(expected, request.decode(response))
    except DecodeError:
        return float("inf")


def relative_difference(expected: Any, got: Any) -> float:
    """The largest difference in one output, as a share of its largest finite value."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return float("inf")
    apart = float(np.max(differences(expected, got), initial=0.0))
    if not apart or expected.dtype.kind in "biuO":
        return float("inf") if apart else 0.0
    largest = np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)
    return apart / max(float(largest), 1e-30)


def overlap(one: Any, two: Any, k: int) -> float:
    """The share of candidates that are among the k highest scores of both; NaN ranks lowest."""
    return len(np.intersect1d(_top(one, k), _top(two, k))) / k


def correlation(one: Any, two: Any) -> float:
    """Spearman's rank correlation; equal scores share the mean of their ranks, NaN ranks lowest.

    1 if both rank all candidates alike, even as ties; 0 if only one ranks them all as ties.
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
