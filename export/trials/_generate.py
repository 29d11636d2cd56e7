"""Generates rows that reveal differences between two signatures of a model.

They include empty and full lists, missing features, unknown words, values that the model knows,
zeros, negative numbers and large ids, as extreme as the model accepts. The same seed gives the same
rows.
"""

import bisect
import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from colcast.export.convert._features import Feature, Kind, Scalar
from colcast.export.trials._domains import Domain, ladder
from colcast.export.trials._rows import Cells, Rows, cells

Accepts = Callable[[Rows], bool]

_MISSING = 0.1  # share of rows that lack an optional feature
_TRIAL_ROWS = 24
_MANY_TRIAL_ROWS = 100  # for models that may accept a few rows by chance
_END_ROWS = 3  # rows with the extreme values of domains


@dataclasses.dataclass(frozen=True)
class _Lengths:
    """The shortest and longest length of lists, and whether all lists of a row are equally long."""

    shortest: int
    longest: int
    equal: bool = False


_ANY = _Lengths(0, 5)
_OPTIONAL = _Lengths(0, 1)
_LENGTHS = (
    _ANY,
    _Lengths(0, 5, equal=True),
    _Lengths(1, 5),
    _Lengths(1, 5, equal=True),
    *(_Lengths(n, n, equal=True) for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)),
    _Lengths(0, 0),
)


@dataclasses.dataclass(frozen=True)
class _Style:
    """How to draw a feature.

    Attributes:
      domain: its values.
      lengths: the lengths of its lists, if it has any.
      may_miss: whether a row may lack it, if it has a default.
    """

    domain: Domain
    lengths: _Lengths = _ANY
    may_miss: bool = True


class RowSource:
    """Draws new rows on each call."""

    def __init__(
        self, features: Sequence[Feature], known: Mapping[str, Sequence[Scalar]], seed: int = 0
    ) -> None:
        """Starts with the boldest values.

        Args:
          features: a signature's features.
          known: the values that the model treats specially, by feature.
          seed: the random seed.
        """
        self._features = tuple(features)
        self._random = np.random.default_rng(seed)
        shared = functools.cache(ladder)  # features of one domain are drawn together
        self._ladders = {f.name: shared(f.dtype, tuple(known.get(f.name, ()))) for f in features}
        self._styles = {name: _Style(of[0]) for name, of in self._ladders.items()}
        self._lengths = _ANY

    def draw(self, count: int) -> Rows:
        together = self._draw_lengths(self._lengths, count)
        made: dict[str, Cells] = {}
        scalars: dict[tuple[Any, ...], list[Feature]] = {}
        for feature in self._features:
            if feature.kind is Kind.FIXED_LEN and not feature.shape:
                style = self._styles[feature.name]
                may_miss = style.may_miss and feature.default is not None
                alike = (feature.dtype, id(style.domain), may_miss)
                scalars.setdefault(alike, []).append(feature)
            else:
                made[feature.name] = self._cells(feature, count, together)
        for (*_, may_miss), features in scalars.items():
            made |= self._scalars(features, count, _MISSING if may_miss else 0.0)
        return Rows(self._features, {f.name: made[f.name] for f in self._features})

    def _scalars(self, features: Sequence[Feature], count: int, missing: float) -> dict[str, Cells]:
        """Cells of features with one value of the same domain."""
        domain, shape = self._styles[features[0].name].domain, (len(features), count)
        padded = np.empty((*shape, 1), features[0].numpy_dtype)
        padded[..., 0] = domain.draw(self._random, len(features) * count).reshape(shape)
        lacks = self._random.random(shape) < missing
        for row, end in enumerate(domain.ends[:count]):  # the first rows get these
            padded[:, row], lacks[:, row] = end, False
        counts = np.where(lacks, -1, 1)
        for number, feature in enumerate(features if lacks.any() else ()):
            padded[number, lacks[number]] = feature.default
        return {f.name: Cells(padded[n], counts[n]) for n, f in enumerate(features)}

    def fit(self, accepts: Accepts) -> bool:
        """Restricts values and lists until the model accepts them; False if it accepts none.

        Args:
          accepts: returns whether the model accepts given rows.
        """

        def trial() -> bool:
            return accepts(self.draw(_TRIAL_ROWS))

        # Modest values come first, because a model may take long to refuse bold ones.
        lists = [f.name for f in self._features if f.kind not in (Kind.FIXED_LEN, Kind.WHOLE)]
        for lengths in _LENGTHS if lists else _LENGTHS[:1]:
            self._lengths = lengths
            self._be_modest(dict.fromkeys(self._styles, lengths))
            if trial():
                self._embolden(tuple(self._styles), self._boldest, self._find_domain, trial)
                if lengths != _ANY:
                    self._embolden_lengths(accepts)
                return True
        self._styles = {name: _Style(of[0]) for name, of in self._ladders.items()}
        self._lengths = _ANY
        return False

    def fitted(self, accepts: Accepts) -> "RowSource | None":
        """A copy of this source, restricted further until `accepts` returns True for its rows.

        None if no rows are accepted, or only rows in which a feature has the same value everywhere.
        """
        other = copy.copy(self)

        def trial() -> bool:
            return accepts(other.draw(_MANY_TRIAL_ROWS))

        # No domain is bolder than the current one.
        other._ladders = {
            name: of[of.index(self._styles[name].domain) :] for name, of in self._ladders.items()
        }
        other._be_modest({name: of.lengths for name, of in self._styles.items()})
        if not trial():
            return None
        other._embolden(tuple(self._styles), other._boldest, other._find_domain, trial)
        one = any(other._has_one_value(name) for name in other.more_modest(self))
        return None if one else other

    def _be_modest(self, lengths: Mapping[str, _Lengths]) -> None:
        """Sets each feature to its most modest domain."""
        self._styles = {
            name: _Style(of[-1], lengths[name], may_miss=False)
            for name, of in self._ladders.items()
        }

    def more_modest(self, than: "RowSource") -> dict[str, str]:
        """The features that `than` draws more boldly, and a description of this source's values."""
        return {
            name: style.domain.description
            for name, style in self._styles.items()
            if style.domain is not than._styles[name].domain
        }

    def _has_one_value(self, name: str) -> bool:
        return self._styles[name].domain is self._ladders[name][-1]

    def _embolden(
        self,
        names: Sequence[str],
        boldest: Callable[[str], _Style],
        find: Callable[[str, Callable[[], bool]], None],
        tried: Callable[[], bool],
    ) -> None:
        """Makes features as bold as the model accepts: all at once or, if it refuses, by halves.

        Args:
          names: the features.
          boldest: returns a feature's boldest style.
          find: finds the boldest accepted style of a single feature.
          tried: returns whether the model accepts rows drawn now.
        """
        modest = {name: self._styles[name] for name in names}
        self._styles.update({name: boldest(name) for name in names})
        if tried():
            return
        self._styles.update(modest)
        if len(names) > 1:
            middle = len(names) // 2
            self._embolden(names[:middle], boldest, find, tried)
            self._embolden(names[middle:], boldest, find, tried)
            return
        find(names[0], tried)

    def _embolden_lengths(self, accepts: Accepts) -> None:
        """Varies the lengths of lists: a feature with at most one value may accompany longer lists.

        Ragged lists keep their lengths: if other inputs hold their partitions, TensorFlow may hang.
        """

        def each_alone() -> bool:
            rows = self.draw(_TRIAL_ROWS)
            return accepts(rows) and all(accepts(rows[i : i + 1]) for i in range(len(rows)))

        own = (Kind.VAR_LEN, Kind.FIXED_LEN_SEQUENCE)
        names = [f.name for f in self._features if f.kind in own]
        if names:
            self._embolden(names, self._any_lengths, self._find_lengths, each_alone)

    def _boldest(self, name: str) -> _Style:
        return _Style(self._ladders[name][0], self._styles[name].lengths)

    def _any_lengths(self, name: str) -> _Style:
        return dataclasses.replace(self._styles[name], lengths=_ANY)

    def _find_domain(self, name: str, tried: Callable[[], bool]) -> None:
        """Gives a feature the boldest accepted domain."""
        modest, domains = self._styles[name], self._ladders[name]

        def accepted(domain: Domain) -> bool:
            self._styles[name] = dataclasses.replace(modest, domain=domain)
            return tried()

        level = bisect.bisect_left(domains, True, hi=len(domains) - 1, key=accepted)
        style = dataclasses.replace(modest, domain=domains[level])
        self._try(name, style, tried, may_miss=True)

    def _find_lengths(self, name: str, tried: Callable[[], bool]) -> None:
        self._try(name, self._styles[name], tried, lengths=_OPTIONAL)

    def _try(self, name: str, style: _Style, tried: Callable[[], bool], **bolder: Any) -> None:
        """Sets a feature's style, made bolder if the model accepts that."""
        self._styles[name] = dataclasses.replace(style, **bolder)
        if not tried():
            self._styles[name] = style

    def _cells(self, feature: Feature, count: int, together: Any) -> Cells:
        style = self._styles[feature.name]
        lengths = np.ones(count, np.int64)
        may_miss = style.may_miss and feature.default is not None
        if feature.kind not in (Kind.FIXED_LEN, Kind.WHOLE):
            equal = style.lengths.equal
            lengths = together if equal else self._draw_lengths(style.lengths, count)
            may_miss = style.lengths.shortest == 0 and not style.lengths.equal
        missing = self._random.random(count) < (_MISSING if may_miss else 0.0)
        ends = style.domain.ends[:count]  # the first rows get these
        missing[: len(ends)] = False
        counts = lengths * feature.size
        values = style.domain.draw(self._random, int(counts.sum()))
        if missing.any():
            values = values[np.repeat(~missing, counts)]
            counts = np.where(missing, -1, counts)
        made = cells(feature, counts, values)
        for row, end in enumerate(ends):
            made.padded[row, : counts[row]] = end
        return made

    def _draw_lengths(self, lengths: _Lengths, count: int) -> Any:
        drawn = self._random.integers(lengths.shortest, lengths.longest + 1, count)
        drawn[:_END_ROWS] = lengths.longest
        return drawn


def accepted_together(rows: Rows, accepts: Accepts) -> Rows:
    """The rows that a model accepts both one by one and together."""
    accepted = accepted_rows(rows, accepts)
    if accepted is rows or (len(accepted) and accepts(accepted)):
        return accepted
    return rows[:0]


def accepted_rows(rows: Rows, accepts: Accepts) -> Rows:
    """The rows that a model accepts, tried all at once, then in halves."""
    if not len(rows) or accepts(rows):
        return rows
    if len(rows) == 1:
        return rows[:0]
    middle = len(rows) // 2
    return accepted_rows(rows[:middle], accepts) + accepted_rows(rows[middle:], accepts)
