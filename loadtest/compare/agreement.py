"""Measures how far the answers of two servers, A and B, to the same requests differ."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.loadtest.measure.correctness import correlation, differences, overlap
from colcast.loadtest.send.connection import Answer, Request

_NUMBERS = "fiu"  # NumPy's kinds of outputs that can be ranked


@dataclass(frozen=True)
class Largest:
    """The largest difference in an output, and its position.

    Attributes:
      difference: infinite for a number against NaN, or for two different strings.
      request: the number of the request, from 0.
      candidate: the row; None for an output that is a single value.
      a: the value in A's answer.
      b: the value in B's.
    """

    difference: float
    request: int
    candidate: int | None
    a: Any
    b: Any


@dataclass(frozen=True)
class PerRequest:
    """A statistic over requests: the mean, the lowest value and the request with that value."""

    mean: float
    lowest: float
    request: int


@dataclass(frozen=True)
class OutputAgreement:
    """One output, in all requests whose two answers have the same form.

    Attributes:
      name: the output's name.
      values: the number of compared values.
      differing: the number of values that are not equal.
      absolute: the largest difference.
      relative: the largest difference as a share of the larger of the two values.
      top10: the share of candidates that are among the ten highest scores of both, over requests
          with more than ten; None without such a request, or if the output is not one number per
          candidate.
      correlation: Spearman's rank correlation of the candidates.
      nan: the number of NaN values in A and in B.
      infinite: the number of infinite values in A and in B.
    """

    name: str
    values: int
    differing: int
    absolute: Largest
    relative: Largest
    top10: PerRequest | None
    correlation: PerRequest | None
    nan: tuple[int, int]
    infinite: tuple[int, int]


@dataclass(frozen=True)
class Refusal:
    """A request that at least one side refused; the other side may have code OK and no message.

    Attributes:
      request: the number of the request, from 0.
      codes: A's and B's gRPC codes.
      messages: A's and B's error messages.
      format: B's format, if there are several.
    """

    request: int
    codes: tuple[str, str]
    messages: tuple[str, str]
    format: str = ""


@dataclass(frozen=True)
class OtherForm:
    """An output whose dtype or shape differs between A and B, or that one answer lacks."""

    name: str
    requests: int
    first: int
    form: str


@dataclass(frozen=True)
class Agreement:
    """The result of comparing answers.

    Attributes:
      requests: the number of requests sent to each side.
      answered: the number of requests that both answered.
      codes: gRPC code -> number of answers, for A and for B.
      refusals: requests that only one side answered.
      alike: requests that both refused with the same code.
      other_forms: outputs that could not be compared.
      outputs: outputs that were compared.
    """

    requests: int
    answered: int
    codes: tuple[Counter[str], Counter[str]]
    refusals: Sequence[Refusal]
    alike: Sequence[Refusal]
    other_forms: Sequence[OtherForm]
    outputs: Sequence[OutputAgreement]


@dataclass(frozen=True)
class _Pair:
    """One output in A's and in B's answer to a request."""

    request: int
    a: Any
    b: Any


def agreement(
    requests: Sequence[tuple[Request, Request]], answers: Sequence[tuple[Answer, Answer]]
) -> Agreement:
    """Compares the answers to each request.

    Args:
      requests: the requests as sent to A and to B.
      answers: A's and B's answers.

    Raises:
      colcast.client.DecodeError: a response cannot be decoded.
    """
    refusals: list[Refusal] = []
    alike: list[Refusal] = []
    pairs: dict[str, list[_Pair]] = {}
    forms: dict[str, list[tuple[int, str]]] = {}
    for number, (sent, got) in enumerate(zip(requests, answers, strict=True)):
        if any(answer.code != "OK" for answer in got):
            codes, messages = (got[0].code, got[1].code), (got[0].message, got[1].message)
            refused = alike if codes[0] == codes[1] else refusals
            refused.append(Refusal(number, codes, messages))
            continue
        a, b = (one.decode(it.response) for one, it in zip(sent, got, strict=True))
        for name in sorted({*a, *b}):
            one, two = (_form(outputs.get(name)) for outputs in (a, b))
            if one == two:
                pairs.setdefault(name, []).append(_Pair(number, a[name], b[name]))
            else:
                forms.setdefault(name, []).append((number, f"{one} in A, {two} in B"))
    return Agreement(
        requests=len(requests),
        answered=len(requests) - len(refusals) - len(alike),
        codes=(Counter(a.code for a, _ in answers), Counter(b.code for _, b in answers)),
        refusals=refusals,
        alike=alike,
        other_forms=[OtherForm(name, len(of), *of[0]) for name, of in forms.items()],
        outputs=[_output(name, of) for name, of in sorted(pairs.items())],
    )


def _form(values: Any) -> str:
    if values is None:
        return "missing"
    kind = "string" if values.dtype == object else values.dtype.name
    return f"{kind} {list(values.shape)}"


def _output(name: str, pairs: Sequence[_Pair]) -> OutputAgreement:
    apart = [differences(pair.a, pair.b) for pair in pairs]
    ranking = [pair for pair in pairs if _ranks(pair.a)]
    return OutputAgreement(
        name=name,
        values=sum(it.size for it in apart),
        differing=sum(int(np.count_nonzero(it)) for it in apart),
        absolute=_largest(pairs, apart),
        relative=_largest(pairs, list(map(_relative, pairs, apart))),
        top10=_top10(ranking),
        correlation=_per_request(ranking, correlation),
        nan=_counts(pairs, np.isnan),
        infinite=_counts(pairs, np.isinf),
    )


def _largest(pairs: Sequence[_Pair], apart: Sequence[Any]) -> Largest:
    highest = [float(np.max(it, initial=0.0)) for it in apart]
    number = int(np.argmax(highest))
    pair, it = pairs[number], apart[number]
    if not it.size:
        return Largest(0.0, pair.request, None, None, None)
    place = np.unravel_index(int(np.argmax(it)), it.shape)
    candidate = int(place[0]) if place else None
    return Largest(highest[number], pair.request, candidate, pair.a[place], pair.b[place])


def _relative(pair: _Pair, apart: Any) -> Any:
    if pair.a.dtype == object:
        return apart
    larger = np.maximum(*(np.abs(np.asarray(it, np.complex128)) for it in (pair.a, pair.b)))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(apart == 0, 0.0, apart / larger)
    return np.nan_to_num(shares, nan=np.inf, posinf=np.inf)


def _ranks(values: Any) -> bool:
    """Whether an output can be ranked: one number per candidate, and at least two candidates."""
    return values.dtype.kind in _NUMBERS and values.ndim > 0 and values.size == len(values) > 1


def _top10(pairs: Sequence[_Pair]) -> PerRequest | None:
    return _per_request([it for it in pairs if it.a.size > 10], lambda a, b: overlap(a, b, 10))


def _per_request(pairs: Sequence[_Pair], figure: Callable[[Any, Any], float]) -> PerRequest | None:
    if not pairs:
        return None
    figures = [figure(pair.a.ravel(), pair.b.ravel()) for pair in pairs]
    lowest = int(np.argmin(figures))
    return PerRequest(float(np.mean(figures)), figures[lowest], pairs[lowest].request)


def _counts(pairs: Sequence[_Pair], which: Callable[[Any], Any]) -> tuple[int, int]:
    if pairs[0].a.dtype == object:
        return 0, 0
    a = sum(int(np.count_nonzero(which(pair.a))) for pair in pairs)
    return a, sum(int(np.count_nonzero(which(pair.b))) for pair in pairs)
