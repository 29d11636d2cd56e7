"""Converts a batch of rows to each feature's values as the table's file stores them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from colcast.client import InputError
from colcast.client.data_set import (
    check_absent,
    columns_of,
    default_column,
    misspelled,
    names_of,
)
from colcast.items._features import ItemFeature
from colcast.items._values import Values, filled, shaped, values_of_arrow, values_of_column

Columns = Mapping[str, Any]
"""A batch of rows: name -> a list, an array or a series with one entry per row."""


def convert(features: Sequence[ItemFeature], batch: Columns, rows: int) -> Iterator[Values]:
    """Yields every feature's values; the model's default if the batch lacks its column.

    Raises:
        InputError: a value does not fit; the message names its feature and row.
    """
    for feature in features:
        yield _given(feature, batch) or _absent(feature, rows)


def check_columns(features: Sequence[ItemFeature], batch: Columns, key: str) -> None:
    """Checks the batch's columns.

    Raises:
        InputError: the key is not a column, a feature without a default is missing, or a column
            looks like a misspelled feature.
    """
    if key not in batch:
        there = ", ".join(sorted(map(repr, batch)))
        raise InputError(f"the key is not a column; the columns are {there}", feature=key)
    wanted = {one.name: one.feature for one in features}
    unused = frozenset(batch) - names_of(wanted) - {key}
    check_absent(wanted, batch.keys(), unused)
    for name, near in misspelled(wanted, batch.keys(), unused).items():
        message = f"missing; misspelled as {near!r}? If not, remove that column"
        raise InputError(message, feature=name)


def _given(feature: ItemFeature, batch: Columns) -> Values | None:
    wanted = {feature.name: feature.feature}
    own = {name: batch[name] for name in names_of(wanted) & batch.keys()}
    if feature.name not in own:
        return None
    values, array = None, own[feature.name]
    if len(own) == 1 and isinstance(array, pa.Array):
        own[feature.name] = array = filled(feature, array)
        values = values_of_arrow(feature, array)
        if values is None:
            own[feature.name] = shaped(feature, array)
    return values or values_of_column(feature, columns_of(wanted, own)[feature.name])


def _absent(feature: ItemFeature, rows: int) -> Values:
    default = default_column(feature.feature)
    assert default is not None, feature.name  # checked by `check_columns`
    return values_of_column(feature, default.take(np.zeros(rows, np.intp)))
