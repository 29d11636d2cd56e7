"""Features, of a tf.Example or of a signature that takes tensors, and their columns."""

import dataclasses
import enum
import math
from typing import Any

import ml_dtypes
import numpy as np


class _Word(str, enum.Enum):
    """enum.StrEnum, which Python 3.10 lacks."""

    __str__ = str.__str__


class Kind(_Word):
    """How the parse op reads a feature, or how an input is declared.

    Of inputs, FIXED_LEN is [None, *shape], FIXED_LEN_SEQUENCE [None, None, *shape], and WHOLE one
    without rows: a scalar, or one with a fixed first dimension.
    """

    FIXED_LEN = "fixed_len"
    VAR_LEN = "var_len"
    FIXED_LEN_SEQUENCE = "fixed_len_sequence"
    RAGGED = "ragged"
    WHOLE = "whole"


class Side(_Word):
    """The domains that every model has; its owner may name more."""

    USER = "user"  # the same on every row of a request
    ITEM = "item"
    CANDIDATE = "candidate"  # of a user and an item, or of the moment


Scalar = int | float | bytes

DTYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "bool", "string"),
)
"""The dtypes of inputs; a tf.Example has int64, float32 and string only."""

_NUMPY_DTYPES: dict[str, Any] = {"string": object, "bfloat16": ml_dtypes.bfloat16}


@dataclasses.dataclass(frozen=True)
class Column:
    """One input of a columnar signature. `shape` has None where the size is the request's."""

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
      shape: FIXED_LEN, WHOLE: of its value; FIXED_LEN_SEQUENCE: of one step; () otherwise.
      default: FIXED_LEN: the values of a missing feature, row-major, None where it is required;
        FIXED_LEN_SEQUENCE: the one padding value. None otherwise.
      row_splits_dtype: RAGGED: "int32" or "int64".
      used: whether an output of the signature depends on it.
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

    @property
    def length_column(self) -> str | None:
        """The column that counts the values of each row; None where every row has as many."""
        return f"{self.name}/length" if self.kind in (Kind.VAR_LEN, Kind.RAGGED) else None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs that carry this feature, its values first."""
        if self.kind is Kind.FIXED_LEN:
            return (Column(self.name, self.dtype, (None, *self.shape)),)
        if self.kind is Kind.WHOLE:
            return (Column(self.name, self.dtype, self.shape),)
        values = Column(self.name, self.dtype, (None, None, *self.shape))
        if self.length_column is None:
            return (values,)
        return values, Column(self.length_column, "int64", (None,))

    @property
    def size(self) -> int:
        """How many values one step has; FIXED_LEN, WHOLE: how many the feature has."""
        return math.prod(self.shape)

    @property
    def padding(self) -> Scalar:
        """The value that pads a row behind its last one."""
        if self.kind is Kind.FIXED_LEN_SEQUENCE and self.default is not None:
            return self.default[0]
        return self._empty

    @property
    def _empty(self) -> Scalar:
        return b"" if self.dtype == "string" else self.numpy_dtype.type(0).item()

    @property
    def numpy_dtype(self) -> Any:
        """The dtype of its arrays; strings are Python bytes in object arrays."""
        return np.dtype(_NUMPY_DTYPES.get(self.dtype, self.dtype))

    def default_row(self) -> Any:
        """The default of the feature in a request without it, as one row.

        Returns:
          FIXED_LEN: [1, *shape], None if it is required. FIXED_LEN_SEQUENCE: [1, 1, *shape], one
          step of padding, where that is not zero or empty: clients learn the padding from it. None
          otherwise: what is absent and what has been forgotten would look the same.
        """
        if self.kind is Kind.FIXED_LEN_SEQUENCE and self.padding != self._empty:
            values, shape = (self.padding,) * self.size, (1, 1, *self.shape)
        elif self.kind is Kind.FIXED_LEN and self.default is not None:
            values, shape = self.default, (1, *self.shape)
        else:
            return None
        row = np.empty(self.size, dtype=self.numpy_dtype)
        row[:] = values
        return row.reshape(shape)

    def describe(self) -> str:
        """Kind, dtype and shape in a few words, for messages: `fixed_len int64 [2]`."""
        return f"{self.kind} {self.dtype} [{', '.join(map(str, self.shape))}]"
