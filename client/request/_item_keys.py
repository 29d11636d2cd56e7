"""Candidates by key: the server's item table holds their features (docs/items.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from colcast.client._errors import InputError
from colcast.client._settings import ClientSettings, Policies
from colcast.client.columns._batch import Batch, item_batch
from colcast.client.columns._columns import Source, fixed_column
from colcast.client.columns._dtypes import INT64, STRING
from colcast.client.columns._encode import Tensor
from colcast.client.columns._inputs import table_of_columns, table_of_items
from colcast.client.columns._schema import Feature, Kind
from colcast.client.request._targets import Plan


@dataclass(frozen=True, slots=True)
class ItemsByKey:
    """N candidates identified by keys instead of features.

    Attributes:
        keys: name of a domain's key -> [N] keys.
        items: N rows of features that override the table's; may be empty.
    """

    keys: Mapping[str, Any]
    items: Any = ()


def by_key(items: Any, item_keys: Any, settings: ClientSettings) -> Any:
    """Combines items and keys; returns the items unchanged if there are no keys."""
    if item_keys is None:
        return items
    keys = item_keys if isinstance(item_keys, Mapping) else {settings.item_key: item_keys}
    if not keys:
        raise InputError("item_keys is empty: expected keys, or the name of the key and its keys")
    return ItemsByKey(table_of_columns(keys, None).columns, items)


def batch_by_key(plan: Plan, given: ItemsByKey, policies: Policies) -> Batch:
    """The columns of the items, with their keys."""
    keys = {name: _tensor(plan, name, keys) for name, keys in given.keys.items()}
    rows = len(next(iter(given.keys.values())))
    if not rows:
        raise InputError("item_keys has no rows: there is nothing to rank")
    table = table_of_items(given.items, plan.inputs.difference(keys))
    if not table.columns and not table.unused:
        return Batch(rows, {}, {}, keys=keys)
    if table.rows != rows:
        raise InputError(f"items has {table.rows} rows, item_keys has {rows}")
    batch = item_batch(plan.features, table, policies)
    return replace(batch, unused=batch.unused.difference(keys), keys=keys)


_TEXT = (str, bytes)


def _tensor(plan: Plan, name: str, keys: Sequence[Any]) -> Tensor:
    """The tensor of a key, in the dtype that the model declares if the key is also a feature."""
    text = len(keys) > 0 and isinstance(keys[0], _TEXT)
    feature = plan.features.get(name)
    if feature is None:
        feature = Feature(name, STRING if text else INT64, Kind.SINGLE, ())
    elif feature.kind is not Kind.SINGLE or feature.one_row:
        raise InputError(f"cannot be a key of items: the model reads {feature}", feature=name)
    column = fixed_column(Source(replace(feature, default=None), Policies()), keys)
    return Tensor(feature.dtype, column.values)
