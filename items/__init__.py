"""Item tables: features that a server looks up by key, built from data sets (docs/items.md).

The modules in the order in which data passes through them: `_sources` (a file or a frame -> batches
of columns; `_csv`, `_records` and `_frames` read its kinds), `_values` (a batch's column -> its
values in the file), `_spill` (columns that grow on disk), `_index` (rows by hash of their key),
`_container` (the file), `_publish` (the file appears completely, or not at all). `_features` reads
the model's features, `_schema` describes the table; `_convert` turns a batch into values, `_rows`
all batches into tensors; `_build` and `_delta` run these steps. `_table` reads a table, `_part` one
of its files. `_row_delta` makes deltas of embedding tables (docs/tables.md), which are variables of
a model (`_variables`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from colcast.items._errors import ItemTableError

if TYPE_CHECKING:
    from colcast.items._build import build_table
    from colcast.items._delta import build_delta
    from colcast.items._row_delta import build_row_delta
    from colcast.items._table import ItemTable

__all__ = ["ItemTable", "ItemTableError", "build_delta", "build_row_delta", "build_table"]

_NEED_PYARROW = {
    "build_table": "_build",
    "build_delta": "_delta",
    "build_row_delta": "_row_delta",
    "ItemTable": "_table",
}


def __getattr__(name: str) -> Any:
    """Imports pyarrow and NumPy only on first use."""
    if name not in _NEED_PYARROW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NEED_PYARROW[name]}"), name)
