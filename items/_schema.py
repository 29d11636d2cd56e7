"""The columns of a table, and their declaration in its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colcast.items._features import ItemFeature, from_json, key_feature, to_json

FORMAT, FORMAT_VERSION = "colcast-items", "1"


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

    @property
    def key_feature(self) -> ItemFeature:
        """The key as a feature, which every row must have."""
        return key_feature(self.key, self.key_dtype)

    def to_metadata(self) -> dict[str, str]:
        """The declaration in the file."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "model_domain": self.domain,
            "key": self.key,
            "key_dtype": self.key_dtype,
            "features": to_json(self.features),
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> "Schema":
        """Reads the declaration from a file; KeyError, TypeError or ValueError if there is none."""
        domain, key, dtype = (metadata[name] for name in ("model_domain", "key", "key_dtype"))
        return cls(domain, key, dtype, from_json(metadata["features"]))
