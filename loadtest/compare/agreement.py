"""Measures how far the answers of two servers, A and B, to the same requests differ."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
      a: the value in A's answer; as text if JSON has no such value.
      b: the value in B's.
    """

    difference: float
    request: int
    candidate: int | None
    a: Any
    b: Any

    def __str__(self) -> str:
        """The difference, its position and both values."""
        if not self.difference:
            return "0"
        of = "" if self.candidate is None else f", candidate {self.candidate}"
        values = " against ".join(
            f"{it:.6g}" if isinstance(it, float) else str(it) for it in (self.a, self.b)
        )
        return f"{self.size} (request {self.request}{of}: {values})"

    @property
    def size(self) -> str:
        """The difference alone, as text."""
        return f"{self.difference:.3g}" if math.isfinite(self.difference) else "infinite"


@dataclass(frozen=True)
class PerRequest:
    """A statistic over requests: the mean, the lowest value and the request with that value."""

    mean: float
    lowest: float
    request: int

    def __str__(self) -> str:
        if self.lowest == self.mean:
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} (lowest {self.lowest:.4g}, request {self.request})"


@dataclass(frozen=True)
class OutputAgreement:
    """One output, in all requests whose two answers have the same form.

    Attributes:
      name: the output's name.
      values: the number of compared values.
      differing: the number of values that are not equal.
      largest_difference: the largest difference.
      largest_relative_difference: the same as a share of the larger of the two values.
      top_10_overlap: the share of candidates that are among the ten highest scores of both, over
          requests with more than ten; None without such a request, or if the output is not one
          number per candidate.
      rank_correlation: Spearman's rank correlation of the candidates.
      nan: "A" and "B" -> the number of NaN values.
      infinite: the same for infinite values.
    """

    name: str
    values: int
    differing: int
    largest_difference: Largest
    largest_relative_difference: Largest
    top_10_overlap: PerRequest | None
    rank_correlation: PerRequest | None
    nan: Mapping[str, int]
    infinite: Mapping[str, int]


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
      refusals: requests that at least one side refused.
      other_forms: outputs that could not be compared.
      outputs: outputs that were compared.
    """

    requests: int
    answered: int
    codes: tuple[Counter[str], Counter[str]]
    refusals: Sequence[Refusal]
    other_forms: Sequence[OtherForm]
    outputs: Sequence[OutputAgreement]


@dataclass(frozen=True)
class _Pair:
    """One output in A's and in B's answer to a request."""

    request: int
    a: Any
    b: Any


Compared = Mapping[str, Iterable[tuple[tuple[Request, Request], tuple[Answer, Answer]]]]
"""B's format -> each request as sent to A and to B, and both answers."""


def agreement(compared: Compared) -> Agreement:
    """Compares the answers to each request; with several formats, what differs names its format."""
    refusals: list[Refusal] = []
    codes: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    pairs: dict[str, list[_Pair]] = {}
    forms: dict[str, list[tuple[int, str]]] = {}
    for format_name, requests in compared.items():
        own = format_name if len(compared) > 1 else ""
        for number, (sent, got) in enumerate(requests):
            for count, answer in zip(codes, got, strict=True):
                count[answer.code] += 1
            if any(answer.code != "OK" for answer in got):
                both, messages = (got[0].code, got[1].code), (got[0].message, got[1].message)
                refusals.append(Refusal(number, both, messages, own))
                continue
            a, b = (one.decode(it.response) for one, it in zip(sent, got, strict=True))
            for output in sorted({*a, *b}):
                name = f"{output}, {own}" if own else output
                one, two = (_form(outputs.get(output)) for outputs in (a, b))
                if one == two:
                    pairs.setdefault(name, []).append(_Pair(number, a[output], b[output]))
                else:
                    forms.setdefault(name, []).append((number, f"{one} in A, {two} in B"))
    total = codes[0].total()
    return Agreement(
        requests=total,
        answered=total - len(refusals),
        codes=codes,
        refusals=refusals,
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
        largest_difference=_largest(pairs, apart),
        largest_relative_difference=_largest(pairs, list(map(_relative, pairs, apart))),
        top_10_overlap=_per_request(
            [it for it in ranking if it.a.size > 10], lambda a, b: overlap(a, b, 10)
        ),
        rank_correlation=_per_request(ranking, correlation),
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
    values = (_plain(of[place]) for of in (pair.a, pair.b))
    return Largest(highest[number], pair.request, candidate, *values)


def _plain(value: Any) -> Any:
    """A value for JSON; values that it lacks (NaN, bytes) become text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        return repr(value.decode(errors="backslashreplace"))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


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


def _per_request(pairs: Sequence[_Pair], figure: Callable[[Any, Any], float]) -> PerRequest | None:
    if not pairs:
        return None
    figures = [figure(pair.a.ravel(), pair.b.ravel()) for pair in pairs]
    lowest = int(np.argmin(figures))
    return PerRequest(float(np.mean(figures)), figures[lowest], pairs[lowest].request)


def _counts(pairs: Sequence[_Pair], which: Callable[[Any], Any]) -> dict[str, int]:
    if pairs[0].a.dtype == object:
        return {"A": 0, "B": 0}
    sides = (("A", [pair.a for pair in pairs]), ("B", [pair.b for pair in pairs]))
    return {name: sum(int(np.count_nonzero(which(it))) for it in of) for name, of in sides}
