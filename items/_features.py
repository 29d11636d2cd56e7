"""The features that a model reads in one domain, as recorded by its export."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import DTYPES, Feature, Kind
from colcast.items._errors import ItemTableError

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
        """The feature in the client's form, which converts values.

        A sequence is treated as a list: the server pads it.
        """
        dtype = DTYPES[self.declared["dtype"]]
        if self.is_list:
            return Feature(self.name, dtype, Kind.MULTI, (None, *self.shape))
        return Feature(self.name, dtype, Kind.SINGLE, self.shape, default=self._default())

    def _default(self) -> np.ndarray[Any, Any] | None:
        given = self.declared["default"]
        if given is None:
            return None
        name = self.declared["dtype"]
        storage = "<f4" if name == "bfloat16" else DTYPES[name].storage
        values = np.empty((1, *self.shape), storage)
        values.reshape(-1)[:] = [_scalar(value) for value in given]
        return values


def key_feature(name: str, dtype: str) -> ItemFeature:
    """The key as a feature, which every row must have; its dtype is "int64" or "string"."""
    return ItemFeature(name, {"kind": "fixed_len", "dtype": dtype, "shape": [], "default": None})


def features_of_model(model: Path, domain: str) -> tuple[ItemFeature, ...]:
    """The features of a domain that any signature of an exported model reads by row, by name.

    Args:
        model: the SavedModel's folder, or its base path; the highest version is used.
        domain: `item`, or another domain.

    Raises:
        ItemTableError: the model was not written by an export, reads no feature of this domain, or
            two of its signatures declare a feature differently.
    """
    record = _record(model)
    found: dict[str, ItemFeature] = {}
    domains = set()
    for signature in _signatures(record):
        for name, declared in signature.items():
            domains.add(declared["side"])
            if declared["side"] != domain or declared["kind"] == _NOT_BY_ROWS:
                continue
            feature = ItemFeature(name, {key: declared[key] for key in _DECLARED})
            if found.setdefault(name, feature) != feature:
                message = f"two signatures declare feature {name!r} differently"
                raise ItemTableError(f"{record}: {message}: {found[name]} and {feature}")
    if not found:
        others = ", ".join(sorted(domains)) or "none"
        message = f"the model has no feature of domain {domain!r}; its domains are {others}"
        raise ItemTableError(f"{record}: {message}")
    return tuple(found[name] for name in sorted(found))


def to_json(features: Iterable[ItemFeature]) -> str:
    """Features in canonical JSON: sorted by name, keys sorted, no spaces."""
    listed = [{"name": one.name, **one.declared} for one in features]
    listed.sort(key=lambda one: str(one["name"]))
    return json.dumps(listed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> tuple[ItemFeature, ...]:
    """Reads features that `to_json` wrote; KeyError, TypeError or ValueError for other text."""
    return tuple(
        ItemFeature(one["name"], {key: one[key] for key in _DECLARED}) for one in json.loads(text)
    )


def _record(model: Path) -> Path:
    """The path of the record's file."""
    if not (model / "saved_model.pb").exists() and model.is_dir():
        versions = [each for each in model.iterdir() if each.name.isdecimal() and each.is_dir()]
        model = max(versions, key=lambda each: int(each.name), default=model)
    if not (model / _RECORD).exists():
        raise ItemTableError(
            f"{model} has no {_RECORD}: expected a model that colcast export wrote"
        )
    return model / _RECORD


def _signatures(record: Path) -> list[dict[str, Any]]:
    """The features of each signature."""
    try:
        signatures = json.loads(record.read_bytes())["signatures"].values()
        return [dict(each["features"]) for each in signatures]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ItemTableError(
            f"{record}: not what an export writes ({type(error).__name__}: {error})"
        ) from error


def _scalar(value: Any) -> Any:
    """The value of a default; text is UTF-8, other bytes are {"hex": ...}."""
    if isinstance(value, Mapping):
        return bytes.fromhex(value["hex"])
    return value.encode() if isinstance(value, str) else value
