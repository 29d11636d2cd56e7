"""Item tables: features that a server knows by key, built from data sets (docs/items.md).

The data's path: `_sources` (a file or a frame -> batches of columns; `_csv`, `_records` and
`_frames` are its kinds) -> `_values` (a batch's column as the file has it) -> `_spill` (columns
that grow on disk) -> `_index` (rows by hash of their key) -> `_container` (the file) ->
`_publish` (it appears whole, or not at all). `_features` are the model's, `_schema` the
table's; `_convert` turns a batch into values, `_rows` all of them into tensors; `_build` and
`_delta` do all of it. `_table` reads, with a `_part` for each file. `_row_delta` makes deltas of
embedding tables (docs/tables.md), which are `_variables` of a model.
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
