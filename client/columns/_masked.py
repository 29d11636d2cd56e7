"""Converts NumPy's masked arrays to lists with None."""

import sys
from typing import Any

import numpy as np


def has_masked(value: Any) -> bool:
    """Whether this is a masked array with a masked entry."""
    return isinstance(value, _masked_arrays()) and bool(value.mask.any())


def unmasked(value: Any) -> Any:
    """One row's entry; a masked array as a list with None where masked, or None if all is."""
    if not isinstance(value, _masked_arrays()):
        return value
    if not has_masked(value):
        return np.asarray(value.data)
    return None if value.mask.all() else value.tolist()


def unmasked_entries(values: Any) -> Any:
    """The same for each entry of a column; a column without masked arrays is unchanged."""
    masked = _masked_arrays()
    if isinstance(values, masked) and not has_masked(values):
        return np.asarray(values.data)
    plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    if not isinstance(values, masked) and (
        plain or not any(issubclass(kind, masked) for kind in set(map(type, values)))
    ):
        return values
    return [unmasked(value) for value in values]


def _masked_arrays() -> tuple[Any, ...]:
    """The type of masked arrays, or nothing if the caller has not imported it."""
    module = sys.modules.get("numpy.ma")
    return () if module is None else (module.MaskedArray,)
