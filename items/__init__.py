"""Item tables: features that a server looks up by key, built from data sets (docs/items.md).

In the order of the data: `_sources` turns a file or a frame into batches of columns, `_convert` a
batch into the values that the file stores, `_rows` all batches into tensors on disk, `_index` finds
rows by their key's hash, `_container` writes the file, `_publish` publishes it completely or not at
all. `_build` runs these steps for tables, for deltas, and for deltas of embedding tables
(docs/tables.md), which are a model's variables (`_variables`). `_schema` describes a table's
columns as the model declares them. `_table` reads a table, `_inspect` shows it.

A value that does not fit is an InputError, which names its feature and row; a malformed file, model
or folder an ItemTableError, which names it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from colcast.items._container import ItemTableError

if TYPE_CHECKING:
    from colcast.items._build import build_delta, build_row_delta, build_table
    from colcast.items._table import ItemTable

__all__ = ["ItemTable", "ItemTableError", "build_delta", "build_row_delta", "build_table"]


def __getattr__(name: str) -> Any:
    """Imports pyarrow and NumPy only on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "_table" if name == "ItemTable" else "_build"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
