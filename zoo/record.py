"""Writes the record of a model's signatures as an export would (docs/stages.md)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def independent(*names: str) -> dict[str, Any]:
    """The entries of `independence` for signatures with independent rows."""
    return {name: {"rows": True, "why_not": "", "own_length": []} for name in names}


def independent_rows(name: str) -> dict[str, Any]:
    """The record of a signature of tensors whose rows may be cached, joined and split.

    The last bits of a row may then depend on the other rows of its run.
    """
    return {"source_input": None, "any_rounding": True, "independence": independent(name)}


def with_record(folder: Path, signatures: Mapping[str, Any]) -> None:
    """Writes the record into a SavedModel.

    Args:
      folder: the SavedModel's folder.
      signatures: name -> the signature's record.
    """
    extra = folder / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / "colcast.json").write_text(json.dumps({"signatures": signatures}))
