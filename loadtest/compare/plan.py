"""Chooses the formats in which two sides are compared, and the signatures that they call.

The signatures that an export added are read from its record, or from a server.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from colcast.client import ModelSchema
from colcast.loadtest.compare.sides import Served
from colcast.loadtest.send.formats import source_of

_RECORD = Path("assets.extra", "colcast.json")
# The name that `colcast export --make-default` gives to the model's own serving_default.
_FORMER = "serving_examples"


@dataclass(frozen=True)
class Exported:
    """A signature of the model, and the columnar signature that the exporter made from it.

    Attributes:
      source: the model's own signature.
      kept: the source's name in the export, which differs if --make-default gave its name to the
          exporter's signature.
      columnar: the exporter's signature.
      parses: whether the source takes tf.Examples.
      late: whether there is also a late signature.
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
        """The formats that the export accepts for the same request: the source's, and columns."""
        return [self.source_format, "columnar", *(["late"] if self.late else [])]

    def signature(self, format_name: str) -> str:
        return self.kept if format_name == self.source_format else self.columnar


def exported(
    folder: Path | None, schema: ModelSchema, signature: str | None = None
) -> Exported | None:
    """Finds a signature of the exporter and its source; None if there is none.

    Args:
      folder: the folder of the served version, if it is on this machine.
      schema: the schema of the served model.
      signature: the source, or the exporter's signature; None for the exporter's first one.
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


_LOOKUP_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class Plan:
    """The formats and signatures of the requests to A and B.

    Attributes:
      a: A's format.
      b: one or several formats of B.
      given: the requested signature; None if the export decides.
      exports: the signatures that the exporter added to A and to B.
    """

    a: str
    b: Sequence[str]
    given: str | None
    exports: Sequence[Exported | None]

    @property
    def columns_of(self) -> int:
        """The side whose columns determine generated values: 0 for A, 1 for B."""
        return 0 if self.exports[1] is None else 1

    def signature(self, side: int, format_name: str) -> str | None:
        """The signature that a side's requests call in this format.

        None means the format's usual signature, or the signature that a recorded request names.
        """
        own = self.exports[side]
        if format_name == "recorded":
            return self.given
        if own:
            return own.signature(format_name)
        other = self.exports[1 - side]
        return self.given or (other.source if other else None)


def planned(args: SimpleNamespace, served: Sequence[Served]) -> Plan:
    """The requested formats; if there are none, all formats of B's export."""
    schemas = [_schema(it, args.model) for it in served]
    exports = [
        exported(it.folder, schema, args.signature)
        for it, schema in zip(served, schemas, strict=True)
    ]
    usual = _usual_format(args, exports[1] or exports[0], schemas[0])
    a = args.format or usual
    if args.format_b:
        b = [args.format_b]
    elif args.format or usual == "recorded" or exports[1] is None:
        b = [a]
    else:
        b = list(exports[1].formats)
    return Plan(a, b, args.signature, exports)


def _usual_format(args: SimpleNamespace, made: Exported | None, schema: ModelSchema) -> str:
    if args.traffic.startswith("requests:"):
        return "recorded"
    if made:
        return made.source_format
    own = schema.signature(args.signature) if args.signature else schema.columnar_signature()
    return "example" if own is None or own.takes_examples else "repeated"


def _schema(served: Served, model: str) -> ModelSchema:
    with served.target.client(model, _LOOKUP_TIMEOUT_SECONDS) as client:
        return client.schema()
