"""Converts features and comparisons of scores to their form in colcast.json."""

from collections.abc import Mapping
from typing import Any

from colcast.export.convert._features import Feature, Kind, Scalar
from colcast.export.trials._parity import Parity


def feature_json(feature: Feature) -> dict[str, Any]:
    """A feature as plain values."""
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
