"""Rows of features, as serialized tf.Examples and as columns: the same rows for both signatures."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind, Scalar
from colcast.export.trials._serving_messages import ExampleListWithContext

Columns = dict[str, Any]  # numpy arrays by column name, rows first

Values = Sequence[Scalar] | None
"""A feature's values in one row, row-major; None where the row does not have it."""

_IDS = 100_000  # everyday integers are below
_LONGEST = 12  # bytes of an everyday string

FIELDS = {"int64": "int64_list", "float32": "float_list", "string": "bytes_list"}


@dataclasses.dataclass(frozen=True)
class Rows:
    """Some rows.

    Attributes:
      features: what every row may have.
      values: by feature name, one entry per row.
    """

    features: Sequence[Feature]
    values: Mapping[str, Sequence[Values]]

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values.values())))

    def __getitem__(self, part: slice) -> "Rows":
        """Some of the rows."""
        return Rows(self.features, {name: rows[part] for name, rows in self.values.items()})

    @classmethod
    def joined(cls, features: Sequence[Feature], parts: Sequence["Rows"]) -> "Rows":
        """The rows of all parts."""
        return cls(
            features, {f.name: [v for p in parts for v in p.values[f.name]] for f in features}
        )

    def take(self, rows: Sequence[int]) -> "Rows":
        """The rows of these numbers, in their order."""
        return Rows(
            self.features, {name: [of[row] for row in rows] for name, of in self.values.items()}
        )

    def __add__(self, more: "Rows") -> "Rows":
        """These rows, then more of the same features."""
        values = {name: [*rows, *more.values[name]] for name, rows in self.values.items()}
        return Rows(self.features, values)

    def examples(self, count: int | None = None) -> Any:
        """Each row, or the first `count`, as a serialized tf.Example: an object array of bytes."""
        serialized = np.empty(len(self) if count is None else count, object)
        for row in range(len(serialized)):
            example = tf.train.Example()
            for feature in self.features:
                values = self.values[feature.name][row]
                if values is not None:
                    entry = example.features.feature[feature.name]
                    getattr(entry, FIELDS[feature.dtype]).value.extend(values)
            serialized[row] = example.SerializeToString(deterministic=True)
        return serialized

    def serialized(self, context: Collection[str] | None) -> Any:
        """The rows as their source takes them: tf.Examples, or one list if it has a context."""
        if context is None:
            return self.examples()
        return np.array([self.list_with_context(context)], object)

    def list_with_context(self, context: Collection[str]) -> bytes:
        """The rows as one serialized ExampleListWithContext; `context` names its features."""
        of_context = tuple(f for f in self.features if f.name in context)
        of_examples = tuple(f for f in self.features if f.name not in context)
        (first,) = Rows(of_context, self.values).examples(1)
        examples = Rows(of_examples, self.values).examples(len(self))
        message = ExampleListWithContext(context=first, examples=examples.tolist())
        return bytes(message.SerializeToString(deterministic=True))

    def of_one(self, names: Collection[str]) -> "Rows":
        """The rows with the first one's values of some features on all of them."""
        values = {
            name: [rows[0]] * len(rows) if name in names else rows
            for name, rows in self.values.items()
        }
        return Rows(self.features, values)

    def moderate(self) -> "Rows":
        """The same rows with every float brought between -1 and 1."""
        values = {
            name: [row if row is None else [moderate(value) for value in row] for row in rows]
            for name, rows in self.values.items()
        }
        return Rows(self.features, values)

    def everyday(self) -> "Rows":
        """The rows with ids, short strings and floats between -1 and 1, and no missing values.

        Bold values take more bytes than those of a request do.
        """
        return Rows(self.features, {name: _small_values(of) for name, of in self.values.items()})

    def columns(self) -> Columns:
        """The rows as the inputs of a columnar signature."""
        columns: Columns = {}
        for feature in self.features:
            values = self.values[feature.name]
            columns[feature.name] = _dense(feature, values)
            if feature.length_column is not None:
                lengths = [len(row or ()) for row in values]
                columns[feature.length_column] = np.array(lengths, np.int64)
        return columns


def moderate(value: Scalar) -> Scalar:
    """A float between -1 and 1, in the same order; other values as they are."""
    return value / (1 + abs(value)) if isinstance(value, float) else value


def _small_values(rows: Sequence[Values]) -> list[Values]:
    present = next((row for row in rows if row is not None), None)
    return [
        None if row is None else [_small(value) for value in row]
        for row in (present if row is None else row for row in rows)
    ]


def _small(value: Scalar) -> Scalar:
    if isinstance(value, bytes):
        return value[:_LONGEST] or b"v1"
    if isinstance(value, float):
        return moderate(value)
    if isinstance(value, bool):
        return value
    return (value if value >= 0 else ~value) % _IDS


def _dense(feature: Feature, values: Sequence[Values]) -> Any:
    """[rows, *shape] for FIXED_LEN, else [rows, L, *shape] padded behind each row's last value.

    Of a WHOLE feature, the first row's value, [*shape], is that of all rows.
    """
    if feature.kind is Kind.WHOLE:
        return _dense(dataclasses.replace(feature, kind=Kind.FIXED_LEN), values[:1])[0]
    if feature.kind is Kind.FIXED_LEN:
        width = feature.size
        filled = [(feature.default or ()) if row is None else row for row in values]
        shape: tuple[int, ...] = (len(values), *feature.shape)
    else:
        width = max((len(row or ()) for row in values), default=0)
        padding = (feature.padding,)
        filled = [[*(row or ()), *padding * (width - len(row or ()))] for row in values]
        steps = width // feature.size if feature.size else 0
        shape = (len(values), steps, *feature.shape)
    array = np.empty((len(values), width), feature.numpy_dtype)
    for index, row in enumerate(filled):
        array[index] = row
    return array.reshape(shape)
