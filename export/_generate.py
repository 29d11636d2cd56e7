"""Generates rows that show what can differ between two signatures of a model.

Bold values first: empty and full lists, missing features, unknown words, keys found in the model,
zeros, negative numbers, large ids. A model may refuse some of them (an id feeds an embedding table
directly): `RowSource.fit` then finds, feature by feature, the boldest values that it accepts.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from colcast.export._features import Feature, Kind, Scalar
from colcast.export._keys import Keys
from colcast.export._rows import Columns, Rows, Values

Random = np.random.Generator
Accepts = Callable[[Rows], bool]

_INT64 = np.iinfo(np.int64)
_EXTREME_INTS = (0, -1, 1, 2**31, -(2**31) - 1, int(_INT64.max), int(_INT64.min))
_INT_LIMITS = (1_000_000, 100_000, 10_000, 1000, 300, 100, 30, 10, 5, 3, 2, 1)
_WORDS = ("", "unknown", "Größe 東京", "a b", "17", "-2.5", "x" * 40)
_LONGEST = 5
_MISSING = 0.1  # share of rows without a feature that has a default
_TRIAL_ROWS = 48

# What lengths a feature's lists may have: shortest and longest, boldest first.
_LENGTHS = ((0, _LONGEST), (1, _LONGEST), *((n, n) for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)))


@dataclasses.dataclass
class _Drawn:
    """How a feature is drawn: which entry of its value ladder, which lengths."""

    value: int = 0
    length: int = 0


class RowSource:
    """Draws rows: new ones on each call, the same ones for the same seed."""

    def __init__(self, features: Sequence[Feature], keys: Keys, seed: int = 0) -> None:
        """Takes the features of a signature and the keys that its model knows."""
        self._features = tuple(features)
        self._random = np.random.default_rng(seed)
        self._ladders = {f.name: _ladder(f.dtype, keys) for f in features}
        self._drawn = {f.name: _Drawn() for f in features}

    def draw(self, count: int) -> Rows:
        """That many rows."""
        return Rows(self._features, {f.name: self._values(f, count) for f in self._features})

    def __call__(self, count: int) -> Columns:
        """That many rows as columns."""
        return self.draw(count).columns()

    def fit(self, accepts: Accepts) -> bool:
        """Makes values and lists as modest as a model needs; False if it accepts none at all.

        Args:
          accepts: whether the model scores some rows.
        """

        def try_out() -> bool:
            return accepts(self.draw(_TRIAL_ROWS))

        if try_out():
            return True
        if not self._find_modest(try_out):
            return False
        modest = {name: dataclasses.replace(drawn) for name, drawn in self._drawn.items()}
        for feature in self._features:
            self._embolden(feature, try_out)
        if not all(try_out() for _ in range(3)):
            self._drawn = modest
        return True

    def _find_modest(self, try_out: Callable[[], bool]) -> bool:
        """Sets all features to the same modesty, the utmost that is accepted."""
        for length, back in itertools.product(range(len(_LENGTHS)), range(1, 5)):
            for name, ladder in self._ladders.items():
                self._drawn[name] = _Drawn(max(len(ladder) - back, 0), length)
            if try_out():
                return True
        return False

    def _embolden(self, feature: Feature, try_out: Callable[[], bool]) -> None:
        """Draws one feature as boldly as is accepted while the others stay as they are."""
        drawn = self._drawn[feature.name]
        modest = dataclasses.replace(drawn)
        lengths = range(modest.length + 1) if feature.kind is not Kind.FIXED_LEN else [0]
        for drawn.length, drawn.value in itertools.product(lengths, range(modest.value + 1)):
            if (drawn.length, drawn.value) == (modest.length, modest.value) or try_out():
                return
        self._drawn[feature.name] = modest

    def _values(self, feature: Feature, count: int) -> list[Values]:
        drawn = self._drawn[feature.name]
        draw = self._ladders[feature.name][drawn.value]
        shortest, longest = _LENGTHS[drawn.length]
        may_miss = feature.default is not None if feature.kind is Kind.FIXED_LEN else shortest == 0
        missing = self._random.random(count) < (_MISSING if may_miss else 0.0)
        if feature.kind is Kind.FIXED_LEN:
            sizes = np.full(count, feature.size)
        else:
            longest = int(self._random.integers(shortest, longest + 1))
            sizes = self._random.integers(shortest, longest + 1, count) * feature.size
        values = iter(draw(self._random, int(sizes.sum())))
        rows = [list(itertools.islice(values, int(size))) for size in sizes]
        return [None if gone else row for row, gone in zip(rows, missing, strict=True)]


Draw = Callable[[Random, int], list[Scalar]]


def _ladder(dtype: str, keys: Keys) -> list[Draw]:
    """Ways to draw values of a dtype, boldest first."""
    ladders = {"int64": _int_ladder, "float32": _float_ladder, "string": _string_ladder}
    return list(ladders[dtype](keys))


def _int_ladder(keys: Keys) -> Iterator[Draw]:
    known = list(keys.ints) or [0]

    def bold(random: Random, count: int) -> list[Scalar]:
        kinds = [
            random.integers(-3, 30, count),
            random.integers(0, 1_000_000, count),
            random.integers(-(2**62), 2**62, count),
            random.choice(np.array(_EXTREME_INTS, np.int64), count),
            random.choice(np.array(known, np.int64), count),
        ]
        return _mixed(random, kinds, count)

    yield bold
    for limit in _INT_LIMITS:
        yield functools.partial(_below, limit)
    if keys.ints:
        yield lambda random, count: random.choice(np.array(known, np.int64), count).tolist()
    yield lambda random, count: [1] * count
    yield lambda random, count: [0] * count


def _below(limit: int, random: Random, count: int) -> list[Scalar]:
    """Numbers from 0 to limit - 1, that one among them."""
    values = random.integers(0, limit, count)
    if count:
        values[random.integers(count)] = limit - 1
    return list(values.tolist())


def _float_ladder(keys: Keys) -> Iterator[Draw]:
    del keys

    def bold(random: Random, count: int) -> list[Scalar]:
        scale = random.choice([0.0, 1.0, 1.0, 100.0, 1e6], count)
        return _floats(random.normal(size=count) * scale)

    yield bold
    yield lambda random, count: _floats(random.normal(size=count))
    yield lambda random, count: _floats(random.random(count))
    yield lambda random, count: _floats(random.integers(0, 10, count))
    yield lambda random, count: [1.0] * count
    yield lambda random, count: [0.0] * count


def _floats(values: Any) -> list[Scalar]:
    return list(values.astype(np.float32).tolist())


def _string_ladder(keys: Keys) -> Iterator[Draw]:
    words = [word.encode() for word in _WORDS]
    known = list(keys.strings) or words
    numbers = [str(n).encode() for n in range(100)]

    def pick(choices: Sequence[bytes], random: Random, count: int) -> list[Scalar]:
        return [choices[i] for i in random.integers(0, len(choices), count)]

    def bold(random: Random, count: int) -> list[Scalar]:
        fresh = [b"w%d" % n for n in random.integers(0, 100_000, count)]
        return _mixed(
            random, [pick(words, random, count), pick(known, random, count), fresh], count
        )

    yield bold
    for choices in (known, numbers, [b"1"], [b"0"], known[:1], [b""]):
        yield functools.partial(pick, choices)


def _mixed(random: Random, kinds: Sequence[Any], count: int) -> list[Scalar]:
    """Each value from one of the kinds, as a Python value."""
    which = random.integers(0, len(kinds), count)
    picked = [kinds[kind][i] for i, kind in enumerate(which)]
    return [value.item() if isinstance(value, np.generic) else value for value in picked]
