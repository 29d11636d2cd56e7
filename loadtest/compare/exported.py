"""The signatures that an export added to a model, read from its record or from a server."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colcast.client import ModelSchema
from colcast.loadtest.send.formats import source_of

_RECORD = Path("assets.extra", "colcast.json")
# The name that `colcast export --default` gives to the model's own serving_default.
_FORMER = "serving_examples"


@dataclass(frozen=True)
class Exported:
    """A signature of the model, and the signature with columns that the exporter made from it.

    Attributes:
      source: the model's own signature.
      kept: the source's name in the export; it differs if --default gave its name to the
          exporter's.
      columnar: the exporter's signature.
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
        """The format of requests to the source signature."""
        return "example" if self.parses else "repeated"

    @property
    def formats(self) -> Sequence[str]:
        """The formats in which the export can get the same request: the source's, and columns."""
        return [self.source_format, "columnar", *(["late"] if self.late else [])]

    def signature(self, format_name: str) -> str:
        """The signature that a format calls."""
        return self.kept if format_name == self.source_format else self.columnar


def exported(
    folder: Path | None, schema: ModelSchema, signature: str | None = None
) -> Exported | None:
    """The exported form of a signature, or of the first one; None if there is none.

    Args:
      folder: the folder of the served version, if it is on this machine.
      schema: the schema of the served model.
      signature: the source, or the signature made from it; None for the first one of the exporter.
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
