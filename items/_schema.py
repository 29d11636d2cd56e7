"""The columns of a table: the features that a model reads in one domain, and the key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import DTYPES, Feature, Kind
from colcast.items._container import ItemTableError, reading
from colcast.items._publish import versions

_RECORD = Path("assets.extra", "colcast.json")
_DECLARED = ("kind", "dtype", "shape", "default")
_LISTS = ("var_len", "fixed_len_sequence", "ragged")
_NOT_BY_ROWS = "whole"


@dataclass(frozen=True)
class ItemFeature:
    """One feature of a table.

    Attributes:
        name: its name in the model.
        declared: its kind, dtype, shape and default, as in the model's record.
    """

    name: str
    declared: Mapping[str, Any]

    @property
    def is_list(self) -> bool:
        """Whether a row may have any number of values."""
        return self.declared["kind"] in _LISTS

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row, or of one value of a list."""
        return tuple(self.declared["shape"])

    @cached_property
    def feature(self) -> Feature:
        """The feature as a client's `Feature`, which converts values.

        A sequence is converted like a list, because the server pads it.
        """
        name, given = self.declared["dtype"], self.declared["default"]
        if self.is_list:
            return Feature(self.name, DTYPES[name], Kind.MULTI, (None, *self.shape))
        default = None
        if given is not None:
            default = np.empty(
                (1, *self.shape), "<f4" if name == "bfloat16" else DTYPES[name].storage
            )
            default.reshape(-1)[:] = [_scalar(value) for value in given]
        return Feature(self.name, DTYPES[name], Kind.SINGLE, self.shape, default=default)


def key_feature(name: str, dtype: str) -> ItemFeature:
    """The key as a feature, which every row must have; its dtype is "int64" or "string"."""
    return ItemFeature(name, {"kind": "fixed_len", "dtype": dtype, "shape": [], "default": None})


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Attributes:
        domain: the domain of its features.
        key: the name of the key.
        key_dtype: "int64" or "string".
        features: sorted by name; the key is one of them only if the model reads it.
    """

    domain: str
    key: str
    key_dtype: str
    features: tuple[ItemFeature, ...]

    def to_metadata(self) -> dict[str, str]:
        """The declaration in the file: canonical JSON, with sorted keys and no spaces."""
        features = [{"name": one.name, **one.declared} for one in self.features]
        return {
            "model_domain": self.domain,
            "key": self.key,
            "key_dtype": self.key_dtype,
            "features": json.dumps(
                features, sort_keys=True, separators=(",", ":"), ensure_ascii=False
            ),
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> "Schema":
        """Reads the declaration from a file; KeyError, TypeError or ValueError if there is none."""
        domain, key, dtype = (metadata[name] for name in ("model_domain", "key", "key_dtype"))
        listed = json.loads(metadata["features"])
        return cls(domain, key, dtype, tuple(_feature(one["name"], one) for one in listed))


def features_of_model(model: Path, domain: str) -> tuple[ItemFeature, ...]:
    """The features of a domain that an exported model's signatures read by row, sorted by name.

    Args:
        model: the SavedModel's folder, or its base path; the highest version is used.
        domain: `item`, or another domain.
    """
    record = _record(model)
    with reading(f"{record}: not what an export writes"):
        signatures = json.loads(record.read_bytes())["signatures"].values()
        declarations = [one for each in signatures for one in each["features"].items()]
        domains = {declared["side"] for _, declared in declarations}
        given = [
            _feature(name, declared)
            for name, declared in declarations
            if declared["side"] == domain and declared["kind"] != _NOT_BY_ROWS
        ]
    found: dict[str, ItemFeature] = {}
    for feature in given:
        other = found.setdefault(feature.name, feature)
        if other != feature:
            message = f"two signatures declare feature {feature.name!r} differently"
            raise ItemTableError(f"{record}: {message}: {other} and {feature}")
    if not found:
        others = ", ".join(sorted(domains)) or "none"
        message = f"the model has no feature of domain {domain!r}; its domains are {others}"
        raise ItemTableError(f"{record}: {message}")
    return tuple(found[name] for name in sorted(found))


def _record(model: Path) -> Path:
    """The path of the record's file."""
    if not (model / "saved_model.pb").exists() and (numbers := versions(model)):
        model /= str(numbers[-1])
    if not (model / _RECORD).exists():
        raise ItemTableError(
            f"{model} has no {_RECORD}: expected a model that colcast export wrote"
        )
    return model / _RECORD


def _feature(name: str, declared: Mapping[str, Any]) -> ItemFeature:
    return ItemFeature(name, {key: declared[key] for key in _DECLARED})


def _scalar(value: Any) -> Any:
    """Decodes a default from JSON: UTF-8 text is a string, other bytes are {"hex": ...}."""
    if isinstance(value, Mapping):
        return bytes.fromhex(value["hex"])
    return value.encode() if isinstance(value, str) else value
