"""Users and items that come back: rows of `wide` with a number each, the same for a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from colcast.zoo.wide import Wide

Numbers = npt.NDArray[np.int64]


class Catalog:
    """All users, or all items, of a service."""

    def __init__(self, sizes: Wide, side: str, count: int, seed: int) -> None:
        """Draws the features of `count` rows of a side, `user` or `item`."""
        random = np.random.default_rng(seed)
        self.count = count
        self._side = side
        self._dtypes = {name: it for name, it in sizes.dtypes.items() if name.startswith(side)}
        self._values: dict[str, Any] = {
            name: random.normal(size=count).astype(np.float32)
            if dtype == tf.float32
            else random.integers(0, 1_000_000, count)
            for name, dtype in self._dtypes.items()
        }

    def columns(self, rows: Numbers) -> dict[str, Any]:
        """Feature -> its values [len(rows)] for the rows of these numbers."""
        columns = {name: values[rows] for name, values in self._values.items()}
        for name, dtype in self._dtypes.items():
            if dtype == tf.string:
                texts = [f"{self._side[:1]}{number}" for number in columns[name].tolist()]
                columns[name] = np.array(texts, object)
        return columns


@dataclass(frozen=True)
class Zipf:
    """Numbers below `count`, of which the n-th is drawn with a chance of 1 / n**exponent."""

    count: int
    exponent: float = 1.0

    def draws(self, together: int, seed: int) -> Iterator[Numbers]:
        """Endless draws of `together` different numbers, the same for a seed."""
        random = np.random.default_rng(seed)
        ends = np.cumsum(1.0 / np.arange(1, self.count + 1) ** self.exponent)
        numbers = random.permutation(
            self.count
        )  # which row is popular says nothing of its features
        while True:
            drawn: dict[int, None] = {}
            while len(drawn) < together:
                ranks = np.searchsorted(ends, random.random(2 * together) * ends[-1])
                drawn |= dict.fromkeys(ranks.tolist())
            yield numbers[list(drawn)[:together]]
