"""Item tables: features that a server looks up by key, built from data sets (docs/items.md).

In the order of the data: `_sources` turns a file or a frame into batches of columns (`_csv`,
`_records` and `_frames` read the formats), `_values` a column into its values in the file, `_spill`
collects columns on disk, `_index` finds rows by their key's hash, `_container` writes the file,
`_publish` makes it appear completely or not at all. `_features` reads the model's features,
`_schema` describes the table; `_convert` turns a batch into values, `_rows` all batches into
tensors; `_build` and `_delta` run these steps. `_table` reads a table, `_part` one of its files.
`_row_delta` makes deltas of embedding tables (docs/tables.md), which are a model's variables
(`_variables`).
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
