"""Converts rows of a data set as `rank` does, for tables that are built in advance.

`columns_of` converts rows in any form that `rank` takes; `entries_of_examples` turns tf.Examples
into such rows; `check_absent` reports columns that a data set lacks, and `default_column` supplies
them; `no_rows` is a column without rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from colcast.client._settings import Policies
from colcast.client.columns._batch import check_absent, item_batch
from colcast.client.columns._column import Column
from colcast.client.columns._columns import default_column, no_rows
from colcast.client.columns._inputs import table_of_items
from colcast.client.columns._inputs_examples import tables_of_examples
from colcast.client.columns._schema import LENGTH_SUFFIX, Feature, Kind

__all__ = [
    "Column",
    "check_absent",
    "columns_of",
    "default_column",
    "entries_of_examples",
    "names_of",
    "no_rows",
]


def names_of(features: Mapping[str, Feature]) -> frozenset[str]:
    """The names a row may hold: features, and the lengths of multi-valued ones."""
    lengths = (name + LENGTH_SUFFIX for name, one in features.items() if one.kind is Kind.MULTI)
    return frozenset(features).union(lengths)


def columns_of(features: Mapping[str, Feature], rows: Any) -> dict[str, Column]:
    """The columns of the given features, without features that no row has.

    Args:
        features: the features to convert; others in the rows are left out as well.
        rows: candidates as for `RankingClient.rank`, at least one.

    Raises:
        InputError: a value does not fit; names its feature and row.
    """
    table = table_of_items(rows, names_of(features))
    return item_batch(features, table, Policies(nan="send")).columns


def entries_of_examples(
    features: Mapping[str, Feature], examples: Sequence[bytes]
) -> dict[str, Sequence[Any]]:
    """Serialized tf.Examples as rows for `columns_of`: feature -> an entry per example.

    Raises:
        InputError: the bytes are not a tf.Example, or the number of values does not fit.
    """
    shared, varying = tables_of_examples(examples, features)
    once = {name: list(values) * len(examples) for name, values in shared.columns.items()}
    return once | varying.columns
