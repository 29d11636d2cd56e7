"""Chooses the formats in which two sides are compared, and the signatures that they call."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from colcast.client import ModelSchema
from colcast.loadtest.compare.exported import Exported, exported
from colcast.loadtest.compare.sides import Served

_LOOKUP_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class Plan:
    """The formats and signatures of the requests to A and B.

    Attributes:
      a: A's format.
      b: one or several formats of B.
      given: the signature that was asked for; None if the export decides.
      exports: the signatures that the exporter added to A and to B.
    """

    a: str
    b: Sequence[str]
    given: str | None
    exports: Sequence[Exported | None]

    @property
    def columns_of(self) -> int:
        """The side for whose columns values are generated: 0 for A, 1 for B."""
        return 0 if self.exports[1] is None else 1

    def signature(self, side: int, format_name: str) -> str | None:
        """The signature that a side's requests call in this format.

        None for the format's usual one, or for the one that a recorded request names.
        """
        own = self.exports[side]
        if format_name == "recorded":
            return self.given
        if own:
            return own.signature(format_name)
        other = self.exports[1 - side]
        return self.given or (other.source if other else None)


def planned(args: SimpleNamespace, served: Sequence[Served]) -> Plan:
    """The formats that were asked for; if none were, all formats of B's export.

    Raises:
      colcast.client.ColcastError: a server does not answer, or does not have the model.
    """
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
