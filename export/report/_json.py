"""Converts features, proofs and files to their form in colcast.json."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colcast.export.convert._features import Feature, Kind, Scalar
from colcast.export.trials._parity import Parity


def feature_json(feature: Feature) -> dict[str, Any]:
    return {
        "kind": str(feature.kind),
        "dtype": feature.dtype,
        "shape": list(feature.shape),
        "row_splits": feature.row_splits_dtype if feature.kind is Kind.RAGGED else None,
        "default": None if feature.default is None else [_plain(v) for v in feature.default],
        "side": str(feature.side),
        "used": feature.used,
        "columns": {column.name: list(column.shape) for column in feature.columns},
    }


def parity_json(parity: Parity) -> dict[str, Any]:
    """A comparison of scores as plain values."""
    return {
        "parsed_features": "identical",
        "rows": parity.rows,
        "recorded_rows": parity.recorded_rows,
        "identical": parity.identical,
        "largest_difference": dict(parity.differences),
        "refused_rows": parity.refused_rows,
        "refusal": parity.refusal,
        "not_finite": parity.not_finite,
        "unstable_outputs": list(parity.unstable),
        "note": parity.note,
    }


def _plain(value: Scalar) -> int | float | str | Mapping[str, str]:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


_BLOCK = 1 << 20


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The size and checksum of the graph and of each asset.

    Variables are not listed: TensorFlow checks them when it restores them, and they may be trained
    further. Files that people add, such as warm-up requests, are not listed either.
    """
    assets = sorted(file for file in (folder / "assets").rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "crc32": _crc32(file)}
        for file in (folder / "saved_model.pb", *assets)
    }


def _crc32(file: Path) -> str:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"
