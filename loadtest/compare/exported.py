"""The signatures that an export adds to a model, from its record or from a server."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colcast.client import ModelSchema
from colcast.loadtest.send.formats import source_of

_RECORD = Path("assets.extra", "colcast.json")
_FORMER = "serving_examples"  # what `colcast export --default` calls the former serving_default


@dataclass(frozen=True)
class Exported:
    """A signature, and the one with columns that the exporter made of it.

    Attributes:
      source: the signature that the model had.
      kept: its name in the export, where --default gives its own to the new one.
      columnar: the exporter's.
      parses: whether the source takes tf.Examples.
      late: whether there is a late signature, too.
    """

    source: str
    kept: str
    columnar: str
    parses: bool
    late: bool

    @property
    def source_format(self) -> str:
        """How the source gets a request."""
        return "example" if self.parses else "repeated"

    @property
    def formats(self) -> Sequence[str]:
        """How the export can get the same request: as the source does, and as columns."""
        return [self.source_format, "columnar", *(["late"] if self.late else [])]

    def signature(self, format_name: str) -> str:
        """The signature that a format is for."""
        return self.kept if format_name == self.source_format else self.columnar


def exported(
    folder: Path | None, schema: ModelSchema, signature: str | None = None
) -> Exported | None:
    """The exported form of a signature, or of the first one; None without one.

    Args:
      folder: of the version that is served, if it is on this machine.
      schema: of the served model.
      signature: the source, or the one made of it; None: the exporter's first.
    """
    record = folder / _RECORD if folder else None
    if record and record.is_file():
        for name, of in json.loads(record.read_bytes())["signatures"].items():
            if "source" in of and signature in (None, name, of["source"]):
                parses = bool(of["source_input"])
                kept = _kept(schema, of["source"], parses)
                return Exported(of["source"], kept, name, parses, bool(of["late"]))
        return None
    columnar = f"columnar_{signature}"
    if columnar not in schema.signatures:
        columnar = "columnar"
    source = source_of(schema, columnar)
    if source is None or signature not in (None, source, columnar):
        return None
    parses = schema.signatures[source].takes_examples
    former = "serving_default" if source == _FORMER else source
    return Exported(former, source, columnar, parses, f"{columnar}_late" in schema.signatures)


def _kept(schema: ModelSchema, source: str, parses: bool) -> str:
    replaced = parses and not schema.signature(source).takes_examples
    return _FORMER if replaced and _FORMER in schema.signatures else source
