"""Turns tables of user and items into the columns of one request, checked against the signature."""

import logging
import threading
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._settings import Policies
from colcast.client.columns._column import Column
from colcast.client.columns._columns import (
    Source,
    clean_column,
    default_column,
    fixed_column,
    whole_array,
)
from colcast.client.columns._dtypes import Array
from colcast.client.columns._encode import Tensor
from colcast.client.columns._inputs import Table
from colcast.client.columns._lists import given_lengths, list_column
from colcast.client.columns._schema import LENGTH_SUFFIX, Feature, Kind

_log = logging.getLogger("colcast.client")


@dataclass(frozen=True, slots=True)
class Batch:
    """One request's columns.

    Attributes:
        rows: N, the number of candidates.
        columns: feature -> its column, with N rows, or with 1 row for a user feature or one that
            is equal on every row. Absent features with a default are left out.
        whole: features without a row dimension, as arrays.
        unused: given names that the signature does not use.
        encoded: feature -> its encoded column, if it was encoded before.
        indices: domain -> int64 [N], the row of that domain for each candidate; the domain's
            columns then have R rows instead of N.
        keys: inputs [N, ...] that identify items; the server fills in their absent features from
            its item table.
    """

    rows: int
    columns: dict[str, Column]
    whole: dict[str, Array]
    unused: frozenset[str] = frozenset()
    encoded: Mapping[str, bytes] = field(default_factory=dict)
    indices: Mapping[str, Array] = field(default_factory=dict)
    keys: Mapping[str, Tensor] = field(default_factory=dict)


def item_batch(
    features: Mapping[str, Feature], items: Table, policies: Policies, *, once: bool = False
) -> Batch:
    """The columns of the items alone; absent features are not checked yet.

    With `once`, a list of the same value on every row may become one row.
    """
    if items.rows == 0:
        raise InputError("items has no rows: there is nothing to rank")
    batch = Batch(items.rows, {}, {}, items.unused)
    _add_columns(batch, features, items, policies, of_user=False, once=once)
    return batch


def with_user(
    features: Mapping[str, Feature], user: Table | None, items: Batch, policies: Policies
) -> Batch:
    """Adds the user's columns to the items'."""
    batch = replace(items, columns=dict(items.columns), whole=dict(items.whole))
    if user is not None:
        of_items = batch.columns.keys() | batch.whole.keys() | batch.keys.keys()
        if both := user.columns.keys() & of_items:
            raise InputError("given in user and in items", feature=min(both))
        batch = replace(batch, unused=items.unused | user.unused)
        _add_columns(batch, features, user, policies, of_user=True)
    _check_names(features, batch, policies)
    return batch


def send_equal_rows_once(batch: Batch) -> Batch:
    """The same request, with columns that are equal on all rows reduced to one row."""
    columns = {
        name: column.take(_FIRST)
        if column.rows > 1 and name not in batch.encoded and column.same_on_every_row()
        else column
        for name, column in batch.columns.items()
    }
    return replace(batch, columns=columns)


def with_all_rows_in_one(batch: Batch, features: Mapping[str, Feature]) -> Batch:
    """The same request, with at least one column of N rows, from which the server learns N."""
    columns = batch.columns
    if batch.rows == 1 or batch.keys or any(column.rows > 1 for column in columns.values()):
        return batch
    if not columns:
        by_rows = {name: one for name, one in features.items() if one.kind is not Kind.WHOLE}
        absent = ((name, default_column(feature)) for name, feature in by_rows.items())
        columns = {name: column for name, column in absent if column is not None}
    smallest = min(columns, key=lambda name: columns[name].values.nbytes, default=None)
    if smallest is None:
        return batch
    repeated = {smallest: repeat_to(columns[smallest], batch.rows)}
    return replace(batch, columns={**batch.columns, **repeated}, encoded={})


def repeat_to(column: Column, rows: int) -> Column:
    """Repeats a 1-row column to N rows; returns a column of N rows unchanged."""
    if column.rows == rows:
        return column
    return column.take(np.zeros(rows, np.intp))


def check_absent(features: Mapping[str, Feature], given: Set[str], unused: frozenset[str]) -> None:
    """Raises InputError, which names them all, if features without a default are missing."""
    needed = sorted(
        name
        for name, feature in features.items()
        if name not in given and default_column(feature) is None
    )
    if needed:
        first, *others = needed
        also = f" (also: {', '.join(map(repr, others))})" if others else ""
        hint = f"; given but unused: {', '.join(sorted(map(repr, unused))[:4])}" if unused else ""
        message = f"missing{also}, and the model has no default for it{hint}"
        raise InputError(message, feature=first)


_FIRST = slice(0, 1)


def _add_columns(
    batch: Batch,
    features: Mapping[str, Feature],
    table: Table,
    policies: Policies,
    *,
    of_user: bool,
    once: bool = False,
) -> None:
    """Converts a table's columns into the batch, combining values with their lengths."""
    for name, values in table.columns.items():
        feature = features.get(name)
        if feature is None:
            if name.removesuffix(LENGTH_SUFFIX) not in table.columns:
                raise InputError("given without the values that it counts", feature=name)
            continue
        own = _policies_of(feature, policies)
        if once and feature.kind is Kind.SINGLE:
            values = _once(values)
        clean = clean_column(feature, values, own)
        if clean is None:
            _add_column(batch, Source(feature, own, of_user), table, values)
        else:
            batch.columns[name] = clean


def _once(values: Any) -> Any:
    """A list's first value alone, if all its values have that type and are equal."""
    if type(values) is not list or len(values) < 2:
        return values
    first, kind = values[0], type(values[0])
    if kind not in _PLAIN or type(values[-1]) is not kind or first != values[-1] or first == 0.0:
        return values  # 0.0 equals -0.0
    same = set(map(type, values)) == {kind} and values.count(first) == len(values)
    return values[:1] if same else values


_PLAIN = (int, float, str, bytes)


def _policies_of(feature: Feature, policies: Policies) -> Policies:
    """The policies for a feature; one whose default is NaN accepts NaN as a missing value."""
    default = feature.default
    if policies.nan != "error" or default is None or default.dtype.kind != "f":
        return policies
    return replace(policies, nan="send") if np.isnan(default).any() else policies


def _add_column(batch: Batch, source: Source, table: Table, values: Any) -> None:
    feature = source.feature
    length = feature.name + LENGTH_SUFFIX
    if feature.kind is Kind.WHOLE:
        if source.of_user:
            batch.whole[feature.name] = whole_array(source, values[0])
        elif feature.shape is None:
            rows = replace(source, feature=replace(feature, kind=Kind.SINGLE))
            batch.whole[feature.name] = _column(rows, values).values
        else:
            raise source.error(None, "has no rows: pass it in user")
    elif feature.kind is Kind.MULTI and length in table.columns:
        batch.columns[feature.name] = given_lengths(source, values, table.columns[length])
    else:
        batch.columns[feature.name] = _column(source, values)


def _column(source: Source, values: Any) -> Column:
    convert = fixed_column if source.feature.kind is Kind.SINGLE else list_column
    return convert(source, values)


def _check_names(features: Mapping[str, Feature], batch: Batch, policies: Policies) -> None:
    """Raises InputError for missing features, and for unused names that the policy forbids."""
    unused, given = batch.unused, batch.columns.keys() | batch.whole.keys()
    if batch.keys:
        features = {name: feature for name, feature in features.items() if feature.one_row}
    if unused and policies.unused == "error":
        raise InputError("the signature has no such feature", feature=min(unused))
    check_absent(features, given, unused)
    if not unused <= _logged:
        _log_unused(unused)


_logged: set[str] = set()
_logged_lock = threading.Lock()


def _log_unused(unused: frozenset[str]) -> None:
    """Logs each unused column once per process."""
    with _logged_lock:
        fresh = unused - _logged
        _logged.update(fresh)
    _log.warning("not sent, the signature does not use them: %s", ", ".join(sorted(fresh)))
