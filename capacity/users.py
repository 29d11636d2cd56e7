"""Whose each request is."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Users = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Zipf:
    """The n-th of `count` users asks with a chance of 1 / n**exponent."""

    count: int
    exponent: float

    def draw(self, requests: int, seed: int) -> Users:
        """Whose so many requests are."""
        ends = np.cumsum(1.0 / np.arange(1, self.count + 1) ** self.exponent)
        chances = np.random.default_rng(seed).random(requests)
        drawn: Users = np.searchsorted(ends, chances * ends[-1])
        return drawn

    def __str__(self) -> str:
        return f"{self.count:,} users by Zipf's law with exponent {self.exponent:g}"


@dataclass(frozen=True)
class Recorded:
    """Users as they came: a line per request with a key, as from a log of x-colcast-user."""

    path: Path
    numbers: Users

    def draw(self, requests: int, seed: int) -> Users:
        """The first of them; all where there are fewer than `requests`."""
        return self.numbers[:requests]

    def __str__(self) -> str:
        users = len(np.unique(self.numbers))
        return f"{users:,} users in the {len(self.numbers):,} requests of {self.path}"


def parse_users(text: str) -> Zipf | Recorded:
    """Reads `zipf:COUNT:EXPONENT` or `file:PATH`.

    Raises:
      ValueError: it is neither, or the file cannot be read or has too few lines.
    """
    kind, _, rest = text.partition(":")
    if kind == "file" and rest:
        return _recorded(Path(rest))
    count, _, exponent = rest.partition(":")
    try:
        law = Zipf(int(count), float(exponent))
    except ValueError:
        law = None
    if kind != "zipf" or law is None or not (law.count > 0 and 0 <= law.exponent < 100):
        raise ValueError(
            f"{text!r}: wanted is zipf:COUNT:EXPONENT, like zipf:100000:1, or file:PATH"
        )
    return law


_FEWEST_RECORDED = 1000


def _recorded(path: Path) -> Recorded:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ValueError(f"file:{path}: {error.strerror}") from error
    empty = next((number for number, line in enumerate(lines, 1) if not line.strip()), None)
    if empty is not None:
        raise ValueError(f"{path}, line {empty}: no user, expected a key in every line")
    if len(lines) < _FEWEST_RECORDED:
        raise ValueError(
            f"{path}: {len(lines)} requests say too little of hit rates, expected at least "
            f"{_FEWEST_RECORDED:,}"
        )
    numbers: dict[bytes, int] = {}
    return Recorded(path, np.array([numbers.setdefault(one, len(numbers)) for one in lines]))
