"""Generates rows that show what can differ between two signatures of a model.

Empty and full lists, missing features, unknown words, values the model knows, zeros, negative
numbers, large ids; as bold as the model accepts. The same rows for the same seed.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from colcast.export._domains import Domain, domains
from colcast.export._features import Feature, Kind, Scalar
from colcast.export._rows import Rows, Values

Accepts = Callable[[Rows], bool]

_MISSING = 0.1  # share of rows without a feature that they need not have
_TRIAL_ROWS = 24
_END_ROWS = 3  # rows that show the ends of domains


@dataclasses.dataclass(frozen=True)
class _Lengths:
    """How long lists are: the shortest, the longest, and whether all of a row are equally long."""

    shortest: int
    longest: int
    equal: bool = False


_ANY = _Lengths(0, 5)
_LENGTHS = (
    _ANY,
    _Lengths(0, 5, equal=True),
    _Lengths(1, 5),
    _Lengths(1, 5, equal=True),
    *(_Lengths(n, n, equal=True) for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)),
    _Lengths(0, 0),
)


class RowSource:
    """Draws rows, new ones on each call."""

    def __init__(
        self, features: Sequence[Feature], known: Mapping[str, Sequence[Scalar]], seed: int = 0
    ) -> None:
        """Takes the features of a signature and the values its model knows of each."""
        self._features = tuple(features)
        self._random = np.random.default_rng(seed)
        self._ladders = {f.name: domains(f.dtype, known.get(f.name, ())) for f in features}
        self._levels = dict.fromkeys(self._ladders, 0)
        self._lengths = _ANY

    def draw(self, count: int) -> Rows:
        """That many rows."""
        lengths = self._draw_lengths(count)
        values = {f.name: self._values(f, count, lengths) for f in self._features}
        return Rows(self._features, values)

    def fit(self, accepts: Accepts) -> bool:
        """Makes values and lists as modest as a model needs; False if it accepts none at all.

        Args:
          accepts: whether the model scores some rows.
        """

        def tried() -> bool:
            return accepts(self.draw(_TRIAL_ROWS))

        # Modest ones first: what a model refuses may take it long.
        self._levels = {name: len(ladder) - 1 for name, ladder in self._ladders.items()}
        has_lists = any(f.kind not in (Kind.FIXED_LEN, Kind.WHOLE) for f in self._features)
        for self._lengths in _LENGTHS if has_lists else _LENGTHS[:1]:
            if tried():
                self._embolden(tuple(self._ladders), tried)
                return True
        self._lengths = _ANY
        self._levels = dict.fromkeys(self._ladders, 0)
        return False

    def _embolden(self, names: tuple[str, ...], tried: Callable[[], bool]) -> None:
        """Draws features as boldly as is accepted, all at once or else in ever smaller groups."""
        for name in names:
            self._levels[name] = 0
        if tried():
            return
        for name in names:
            self._levels[name] = len(self._ladders[name]) - 1
        if len(names) > 1:
            middle = len(names) // 2
            self._embolden(names[:middle], tried)
            self._embolden(names[middle:], tried)
            return
        (name,) = names

        def accepted(level: int) -> bool:
            self._levels[name] = level
            return tried()

        last = len(self._ladders[name]) - 1
        self._levels[name] = bisect.bisect_left(range(last), True, key=accepted)

    def _values(self, feature: Feature, count: int, lengths: Sequence[int]) -> list[Values]:
        domain = self._ladders[feature.name][self._levels[feature.name]]
        if feature.kind in (Kind.FIXED_LEN, Kind.WHOLE):
            lengths = [1] * count
            may_miss = feature.default is not None
        else:
            if not self._lengths.equal:
                lengths = self._draw_lengths(count)
            may_miss = self._lengths.shortest == 0 and not self._lengths.equal
        missing = self._random.random(count) < (_MISSING if may_miss else 0.0)
        missing[: len(domain.ends)] = False
        rows = self._split(domain, [int(length) * feature.size for length in lengths])
        return [None if gone else row for row, gone in zip(rows, missing, strict=True)]

    def _draw_lengths(self, count: int) -> list[int]:
        lengths = self._random.integers(self._lengths.shortest, self._lengths.longest + 1, count)
        lengths[:_END_ROWS] = self._lengths.longest
        return list(lengths.tolist())

    def _split(self, domain: Domain, sizes: Sequence[int]) -> list[list[Scalar]]:
        """Lists of these sizes; the first ones hold the domain's ends."""
        values = iter(domain.draw(self._random, sum(sizes)))
        rows = [list(itertools.islice(values, size)) for size in sizes]
        for i, end in enumerate(domain.ends[: len(rows)]):
            rows[i] = [end] * sizes[i]
        return rows


def accepted_together(rows: Rows, accepts: Accepts) -> Rows:
    """Those of the rows that a model accepts one by one, if it accepts them together; else none."""
    accepted = accepted_rows(rows, accepts)
    if accepted is rows or (len(accepted) and accepts(accepted)):
        return accepted
    return rows[:0]


def accepted_rows(rows: Rows, accepts: Accepts) -> Rows:
    """Those of the rows that a model accepts, tried all at once, then in halves."""
    if not len(rows) or accepts(rows):
        return rows
    if len(rows) == 1:
        return rows[:0]
    middle = len(rows) // 2
    return accepted_rows(rows[:middle], accepts) + accepted_rows(rows[middle:], accepts)
