"""Distributions of the number of candidates per request."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

LARGEST = 1 << 20  # the server's default of --max_request_rows

# Twenty equally likely sizes, from MLPerf inference's recommendation task.
_MLPERF = (100, 100, *[200] * 12, 300, 300, 400, 500, 600, 700)


class Sizes(Protocol):
    """A distribution of request sizes."""

    def quantile(self, q: float) -> int:
        """The size that a share `q` (0 to 1) of requests does not exceed."""


@dataclass(frozen=True)
class Mix:
    """Equally likely sizes; a size may occur more than once."""

    values: tuple[int, ...]

    def quantile(self, q: float) -> int:
        ordered = sorted(self.values)
        return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


@dataclass(frozen=True)
class LogNormal:
    """Sizes with a normally distributed logarithm: half below `median`, a few far above."""

    median: float
    sigma: float

    def quantile(self, q: float) -> int:
        z = NormalDist().inv_cdf(min(max(q, 1e-9), 1 - 1e-9))
        return max(1, round(self.median * float(np.exp(self.sigma * z))))


@dataclass(frozen=True)
class Pareto:
    """Sizes with a heavy tail: a share (smallest / size) ** alpha of them is larger than `size`."""

    smallest: float
    alpha: float
    largest: int

    def quantile(self, q: float) -> int:
        size: float = self.smallest * max(1 - q, 1e-9) ** (-1 / self.alpha)
        return min(max(1, round(size)), self.largest)


def parse_sizes(text: str) -> Sizes:
    """Reads a distribution of sizes.

    `500`, `20,100,500`, `lognormal:MEDIAN:SIGMA`, `pareto:SMALLEST:ALPHA:LARGEST`, `mlperf` or
    `file:PATH`. The file has one size per line; - is standard input.

    Raises:
      ValueError: the text is none of these, or a size is not a positive whole number.
    """
    kind, _, rest = text.partition(":")
    try:
        if kind == "mlperf" and not rest:
            return Mix(_MLPERF)
        if kind == "lognormal":
            median, sigma = (float(number) for number in rest.split(":"))
            if median < 1 or sigma < 0:
                raise ValueError("the median must be at least 1, and sigma at least 0")
            return LogNormal(median, sigma)
        if kind == "pareto":
            smallest, alpha, largest = (float(number) for number in rest.split(":"))
            if not (1 <= smallest <= largest and alpha > 0):
                raise ValueError("expected 1 <= smallest <= largest, and alpha above 0")
            return Pareto(smallest, alpha, int(largest))
        if kind == "file":
            text = sys.stdin.read() if rest == "-" else Path(rest).read_text()
            return Mix(_whole_numbers(text.split()))
        return Mix(_whole_numbers(text.split(",")))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"sizes {text!r}: {error}; expected a number, a list 20,100,500, "
            "lognormal:MEDIAN:SIGMA, pareto:SMALLEST:ALPHA:LARGEST, mlperf or file:PATH"
        ) from None


def draw(sizes: Sizes, count: int, seed: int) -> npt.NDArray[np.int64]:
    """`count` sizes in random order; a seed always draws the same.

    They are the midpoints of `count` equal slices of the distribution, so that they match its
    quantiles as closely as `count` allows.
    """
    middles = [sizes.quantile((slice_ + 0.5) / count) for slice_ in range(count)]
    return np.random.default_rng(seed).permutation(np.array(middles, np.int64))


def _whole_numbers(texts: Sequence[str]) -> tuple[int, ...]:
    if not texts:
        raise ValueError("it has no size")
    numbers = tuple(int(text) for text in texts)
    if min(numbers) < 1:
        raise ValueError(f"{min(numbers)} candidates are too few")
    if max(numbers) > LARGEST:
        raise ValueError(f"{max(numbers):,} candidates are more than {LARGEST:,}")
    return numbers
