"""Distributions of the number of candidates per request."""

import sys
from collections.abc import Callable, Sequence
from math import exp
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LARGEST = 1 << 20  # the server's default of --max_request_rows

# A distribution of request sizes: maps a share q (0 to 1) to the size that this share of requests
# does not exceed.
Sizes = Callable[[float], int]


def _mix(sizes: Sequence[int]) -> Sizes:
    """Equally likely sizes; a size may occur more than once."""
    ordered = sorted(sizes)
    return lambda q: ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def _lognormal(median: float, sigma: float) -> Sizes:
    """Sizes with a normally distributed logarithm: half below `median`, a few far above."""
    if median < 1 or sigma < 0:
        raise ValueError("the median must be at least 1, and sigma at least 0")
    z = NormalDist().inv_cdf
    return lambda q: max(1, round(median * exp(sigma * z(min(max(q, 1e-9), 1 - 1e-9)))))


def _pareto(smallest: float, alpha: float, largest: float) -> Sizes:
    """Sizes with a heavy tail: a share (smallest / size) ** alpha of them is larger than `size`."""
    if not (1 <= smallest <= largest and alpha > 0):
        raise ValueError("expected 1 <= smallest <= largest, and alpha above 0")
    most = int(largest)
    return lambda q: min(max(1, round(smallest * max(1 - q, 1e-9) ** (-1 / alpha))), most)


def parse_sizes(text: str) -> Sizes:
    """Reads a distribution of sizes.

    `500`, `20,100,500`, `lognormal:MEDIAN:SIGMA`, `pareto:SMALLEST:ALPHA:LARGEST` or
    `file:PATH`. The file has one size per line; - is standard input.

    Raises:
      ValueError: the text is none of these, or a size is not a positive whole number.
    """
    kind, _, rest = text.partition(":")
    try:
        if kind == "lognormal":
            median, sigma = map(float, rest.split(":"))
            return _lognormal(median, sigma)
        if kind == "pareto":
            smallest, alpha, largest = map(float, rest.split(":"))
            return _pareto(smallest, alpha, largest)
        if kind == "file":
            text = sys.stdin.read() if rest == "-" else Path(rest).read_text()
            return _mix(_whole_numbers(text.split()))
        return _mix(_whole_numbers(text.split(",")))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"sizes {text!r}: {error}; expected a number, a list 20,100,500, "
            "lognormal:MEDIAN:SIGMA, pareto:SMALLEST:ALPHA:LARGEST or file:PATH"
        ) from None


def draw(sizes: Sizes, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Draws `count` sizes in random order; the same seed draws the same sizes.

    They are the midpoints of `count` equal slices of the distribution, so that they match its
    quantiles as closely as `count` allows.
    """
    middles = [sizes((slice_ + 0.5) / count) for slice_ in range(count)]
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
