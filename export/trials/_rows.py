"""Rows of features, as serialized tf.Examples and as columns, for both signatures."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.client.messages import new
from colcast.export.convert._features import Feature, Kind, Scalar, Side

Columns = dict[str, Any]  # numpy arrays by column name, rows first

Values = Sequence[Scalar] | None
"""A feature's values in one row, row-major; None if the row lacks it."""

_IDS = 100_000  # upper bound of typical integers
_LONGEST = 12  # maximum length, in bytes, of a typical string
_MISSING = -1
_ROUNDING = 2.0**-23  # float32's epsilon, about one last bit

FIELDS = {"int64": "int64_list", "float32": "float_list", "string": "bytes_list"}


@dataclasses.dataclass(frozen=True)
class Cells:
    """A feature's values in several rows.

    Attributes:
      padded: [rows, most values in a row]. Shorter rows end with the feature's padding; a row
          without the feature holds its default.
      counts: number of values in each row; -1 if the row lacks the feature.
    """

    padded: Any
    counts: Any

    def take(self, rows: Any) -> "Cells":
        """The rows in a slice, or with these row numbers."""
        return Cells(self.padded[rows], self.counts[rows])

    @property
    def present(self) -> Any:
        """Whether each entry of `padded` is a real value rather than padding or a default."""
        return np.arange(self.padded.shape[1]) < self.counts[:, np.newaxis]

    @property
    def is_ever_present(self) -> bool:
        """Whether any row has the feature."""
        return bool((self.counts != _MISSING).any())

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same values."""
        first = self.take(slice(0, 1))
        return bool((self.counts == first.counts).all() and (self.padded == first.padded).all())

    def key(self, row: int) -> tuple[Any, ...]:
        """A row's values, and how many; equal rows have equal keys."""
        count = int(self.counts[row])
        return count, *self.padded[row, : max(count, 0)].tolist()

    def entries(self, feature: Feature) -> Any:
        """Whether each entry of `padded` is a value or a default rather than a list's padding."""
        return True if feature.kind in (Kind.FIXED_LEN, Kind.WHOLE) else self.present

    def changed(self, feature: Feature, change: Callable[[Any], Any]) -> "Cells":
        """The same cells with `change` applied to all values and defaults."""
        changed = change(self.padded)
        return Cells(np.where(self.entries(feature), changed, self.padded), self.counts)

    def moderate(self, feature: Feature) -> "Cells":
        """The same cells with every float mapped to [-1, 1], in order."""
        return self.changed(feature, _moderate) if "float" in feature.dtype else self


def cells(feature: Feature, counts: Any, values: Iterable[Scalar]) -> Cells:
    """Makes cells from the values of all rows, concatenated."""
    fixed = feature.size if feature.kind in (Kind.FIXED_LEN, Kind.WHOLE) else 0
    shape = len(counts), max(fixed, int(counts.max(initial=0)))
    padded = np.full(shape, feature.padding, feature.numpy_dtype)
    made = Cells(padded, counts)
    padded[made.present] = values
    if feature.kind is Kind.FIXED_LEN and feature.default is not None:
        padded[counts == _MISSING, : feature.size] = feature.default
    return made


@dataclasses.dataclass(frozen=True)
class Rows:
    """Cells by feature.

    Attributes:
      features: the features that a row may have.
      cells: their values, by name.
    """

    features: Sequence[Feature]
    cells: Mapping[str, Cells]

    @classmethod
    def of(cls, features: Sequence[Feature], values: Mapping[str, Sequence[Values]]) -> "Rows":
        """Makes rows from lists with one entry per row, by feature name."""
        made = {}
        for feature in features:
            rows = values[feature.name]
            counts = np.array([_MISSING if row is None else len(row) for row in rows], np.int64)
            made[feature.name] = cells(feature, counts, [v for row in rows for v in row or ()])
        return cls(features, made)

    def __len__(self) -> int:
        return len(next(iter(self.cells.values())).counts)

    def __getitem__(self, part: slice) -> "Rows":
        return self.take(part)

    def take(self, rows: Any) -> "Rows":
        """The rows in a slice, or with these row numbers, in that order."""
        return Rows(self.features, {name: of.take(rows) for name, of in self.cells.items()})

    @classmethod
    def joined(cls, features: Sequence[Feature], parts: Sequence["Rows"]) -> "Rows":
        if not parts:
            return cls.of(features, {feature.name: () for feature in features})
        return cls(
            features, {f.name: _joined(f, [p.cells[f.name] for p in parts]) for f in features}
        )

    def __add__(self, more: "Rows") -> "Rows":
        """These rows, followed by more with the same features."""
        return Rows.joined(self.features, [self, more]) if len(self) else more

    @cached_property
    def examples(self) -> Any:
        """Each row as a serialized tf.Example, in an array of objects."""
        serialized = np.empty(len(self), object)
        columns = [
            (feature.name, FIELDS[feature.dtype], of.padded.tolist(), of.counts.tolist())
            for feature in self.features
            for of in [self.cells[feature.name]]
        ]
        for row in range(len(serialized)):
            example = tf.train.Example()
            entries = example.features.feature
            for name, field, padded, counts in columns:
                if counts[row] != _MISSING:
                    getattr(entries[name], field).value.extend(padded[row][: counts[row]])
            serialized[row] = example.SerializeToString(deterministic=True)
        return serialized

    def serialized(self, context: Collection[str] | None) -> Any:
        """The rows as the source takes them: tf.Examples or, with a context, one list."""
        if context is None:
            return self.examples
        return np.array([self.list_with_context(context)], object)

    def list_with_context(self, context: Collection[str]) -> bytes:
        """The rows as one serialized ExampleListWithContext; `context` names its features."""
        of_context = tuple(f for f in self.features if f.name in context)
        of_examples = tuple(f for f in self.features if f.name not in context)
        (first,) = Rows(of_context, self.cells)[:1].examples
        examples = Rows(of_examples, self.cells).examples
        message = new("ExampleListWithContext")
        message.context = first
        message.examples.extend(examples.tolist())
        return bytes(message.SerializeToString(deterministic=True))

    def of_one(self, names: Collection[str]) -> "Rows":
        """The rows, with the first row's values of the features in `names` on every row."""
        first = np.zeros(len(self), int)
        made = {name: of.take(first) if name in names else of for name, of in self.cells.items()}
        return Rows(self.features, made)

    def of_user(self) -> "Rows":
        """The rows, with the first row's user on every row."""
        return self.of_one([f.name for f in self.features if f.side == Side.USER])

    def once(self) -> Columns:
        """The inputs of a late signature: the user's columns have the first row only."""
        user = {c.name for f in self.features if f.side == Side.USER for c in f.columns}
        whole = {feature.name for feature in self.features if feature.kind is Kind.WHOLE}
        columns = self.columns()
        return {n: c[:1] if n in user - whole else c for n, c in columns.items()}

    def changed(self, change: Callable[[Feature, Cells], Cells]) -> "Rows":
        """The same rows with other values, which have the same counts."""
        made = {f.name: change(f, self.cells[f.name]) for f in self.features}
        return Rows(self.features, made)

    def moderate(self) -> "Rows":
        """The same rows with every float mapped to [-1, 1]."""
        return self.changed(lambda feature, of: of.moderate(feature))

    def rounded(self, random: np.random.Generator) -> "Rows":
        """A request with the last bit of every float changed, up or down."""

        def perturb(values: Any) -> Any:
            factors = np.array((1 - _ROUNDING, 1 + _ROUNDING))
            return (values * factors[random.integers(2, size=values.shape)]).astype(values.dtype)

        def change(feature: Feature, of: Cells) -> Cells:
            floats = feature.numpy_dtype.kind == "f" and feature.kind is not Kind.WHOLE
            return of.changed(feature, perturb) if floats else of

        return self.changed(change).of_user()

    def everyday(self) -> "Rows":
        """The rows with small ids, short strings, floats from -1 to 1 and no missing values.

        Generated values would otherwise take more bytes than the values of real requests.
        """
        made = {}
        for name, of in self.cells.items():
            present = np.flatnonzero(of.counts != _MISSING)
            if len(present):
                here = np.arange(len(of.counts))
                of = of.take(np.where(of.counts == _MISSING, present[0], here))
            made[name] = Cells(np.where(of.present, _small(of.padded), of.padded), of.counts)
        return Rows(self.features, made)

    def columns(self) -> Columns:
        """The rows as inputs of a columnar signature.

        A FIXED_LEN feature is [rows, *shape]; others are [rows, L, *shape], padded after each row's
        last value. A WHOLE feature has the first row's value, [*shape], for all rows.
        """
        columns: Columns = {}
        for feature in self.features:
            of = self.cells[feature.name]
            lists = feature.kind not in (Kind.FIXED_LEN, Kind.WHOLE)
            width = int(of.counts.max(initial=0)) if lists else feature.size
            steps = [width // (feature.size or 1)] if lists else []
            column = of.padded[:, :width].reshape(len(self), *steps, *feature.shape)
            columns[feature.name] = column[0] if feature.kind is Kind.WHOLE else column
            if feature.length_column is not None:
                columns[feature.length_column] = np.maximum(of.counts, 0)
        return columns


def _joined(feature: Feature, parts: Sequence[Cells]) -> Cells:
    counts = np.concatenate([part.counts for part in parts])
    width = max(part.padded.shape[1] for part in parts)
    padded = np.full((len(counts), width), feature.padding, feature.numpy_dtype)
    first = 0
    for part in parts:
        rows, own = part.padded.shape
        padded[first : first + rows, :own] = part.padded
        first += rows
    return Cells(padded, counts)


def _small(values: Any) -> Any:
    if values.dtype.kind == "O":
        short = [value[:_LONGEST] or b"v1" for value in values.flat]
        return np.array([*short, None], object)[:-1].reshape(values.shape)
    if values.dtype.kind in "iu":
        positive = np.where(values < 0, ~values, values).astype(np.uint64)
        return (positive % _IDS).astype(values.dtype)
    return values if values.dtype.kind == "b" else _moderate(values)


def _moderate(values: Any) -> Any:
    floats = values.astype(np.float64)
    with np.errstate(invalid="ignore"):  # the default may be infinity
        return (floats / (1 + np.abs(floats))).astype(values.dtype)
