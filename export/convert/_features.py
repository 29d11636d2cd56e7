"""Features of a tf.Example, or of a signature that takes tensors, and their columns."""

import dataclasses
import enum
import math
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np


class _Word(str, enum.Enum):
    """A substitute for enum.StrEnum, which Python 3.10 lacks."""

    __str__ = str.__str__


class Kind(_Word):
    """How the parse op reads a feature, or how an input is declared.

    An input is FIXED_LEN if its shape is [None, *shape], FIXED_LEN_SEQUENCE if [None, None,
    *shape], and WHOLE if it has no rows: a scalar, or a fixed first dimension.
    """

    FIXED_LEN = "fixed_len"
    VAR_LEN = "var_len"
    FIXED_LEN_SEQUENCE = "fixed_len_sequence"
    RAGGED = "ragged"
    WHOLE = "whole"


class Side(_Word):
    """The domains that every model has; its owner may define more."""

    USER = "user"  # the same on every row of a request
    ITEM = "item"
    CANDIDATE = "candidate"  # depends on user and item, or on the moment


Scalar = int | float | bytes

DTYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "bool", "string"),
)
"""The dtypes of inputs; a tf.Example only has int64, float32 and string."""

_NUMPY_DTYPES: dict[str, Any] = {"string": object, "bfloat16": ml_dtypes.bfloat16}


@dataclasses.dataclass(frozen=True)
class Column:
    """One input of a columnar signature. None in `shape` stands for a size that requests choose."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature as the parse op or the signature declares it.

    Attributes:
      name: its key in the tf.Example, or the input's name.
      kind: how it is parsed.
      dtype: one of `DTYPES`.
      shape: FIXED_LEN, WHOLE: the shape of its value; FIXED_LEN_SEQUENCE: of one step; ()
          otherwise.
      default: FIXED_LEN: the values of a missing feature, row-major, None if it is required;
        FIXED_LEN_SEQUENCE: the padding value. None otherwise.
      row_splits_dtype: RAGGED: "int32" or "int64".
      used: whether any output of the signature depends on it.
      side: its domain.
    """

    name: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...] = ()
    default: tuple[Scalar, ...] | None = None
    row_splits_dtype: str = "int64"
    used: bool = True
    side: str = Side.ITEM

    @cached_property
    def length_column(self) -> str | None:
        """The column with the number of values in each row; None if it is the same for all rows."""
        return f"{self.name}/length" if self.kind in (Kind.VAR_LEN, Kind.RAGGED) else None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs that carry this feature; the values come first."""
        if self.kind is Kind.FIXED_LEN:
            return (Column(self.name, self.dtype, (None, *self.shape)),)
        if self.kind is Kind.WHOLE:
            return (Column(self.name, self.dtype, self.shape),)
        values = Column(self.name, self.dtype, (None, None, *self.shape))
        if self.length_column is None:
            return (values,)
        return values, Column(self.length_column, "int64", (None,))

    @cached_property
    def size(self) -> int:
        """The number of values in one step, or, for FIXED_LEN and WHOLE, in the feature."""
        return math.prod(self.shape)

    @cached_property
    def padding(self) -> Scalar:
        """The value that pads a row after its last value."""
        if self.kind is Kind.FIXED_LEN_SEQUENCE and self.default is not None:
            return self.default[0]
        return self._empty

    @property
    def _empty(self) -> Scalar:
        return b"" if self.dtype == "string" else self.numpy_dtype.type(0).item()

    @cached_property
    def numpy_dtype(self) -> Any:
        """The dtype of its arrays; strings are bytes objects in object arrays."""
        return np.dtype(_NUMPY_DTYPES.get(self.dtype, self.dtype))

    def defaults(self) -> dict[str, Any]:
        """The columns of one row for a request without the feature; none if it is required.

        A list that a tf.Example may lack is empty. A FIXED_LEN_SEQUENCE whose padding is not zero
        or empty has one step of padding, from which clients learn the padding value.
        """
        if self.length_column is not None:
            empty = np.empty((1, 0, *self.shape), self.numpy_dtype)
            return {self.name: empty, self.length_column: np.zeros(1, np.int64)}
        if self.kind is Kind.WHOLE or self.default is None:
            return {}
        values, shape = self.default, (1, *self.shape)
        if self.kind is Kind.FIXED_LEN_SEQUENCE:
            steps = int(self.padding != self._empty)
            values, shape = (self.padding,) * (steps * self.size), (1, steps, *self.shape)
        row = np.empty(len(values), dtype=self.numpy_dtype)
        row[:] = values
        return {self.name: row.reshape(shape)}

    def describe(self) -> str:
        """A short description for messages: kind, dtype and shape, as in `fixed_len int64 [2]`."""
        return f"{self.kind} {self.dtype} [{', '.join(map(str, self.shape))}]"
