"""What a server is to know of a model's signatures, as an export records it (docs/parts.md)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of a signature that takes tensors, and no row of which depends on another.
INDEPENDENT_ROWS = {"source_input": None, "rows_independent": True}


def with_record(folder: Path, signatures: Mapping[str, Any]) -> None:
    """Writes the record.

    Args:
      folder: of the SavedModel.
      signatures: name -> what is recorded of it.
    """
    extra = folder / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / "colcast.json").write_text(json.dumps({"signatures": signatures}))
