"""The findings of an export: as data, as colcast.json and as a verdict on the console."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from colcast.export.convert._features import Feature, Side
from colcast.export.convert._signature import Conversion
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._stages_report import StagesReport
from colcast.export.graph._errors import ExportError
from colcast.export.report._cost import Compiled, Cost
from colcast.export.report._json import feature_json, manifest, parity_json
from colcast.export.report._verdict import refused, verdict
from colcast.export.rows._independence import Independence
from colcast.export.trials._parity import Parity
from colcast.export.trials._traffic import unused_text
from rich.console import Console

FILE = Path("assets.extra", "colcast.json")
PAGE = Path("assets.extra", "colcast.html")
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class SignatureReport:
    """The report of one converted signature.

    Attributes:
      name: the columnar signature's name.
      source: the signature from which it was made.
      source_input: the source's input for serialized tf.Examples; None if it takes tensors.
      features: the features that the columnar signature takes.
      nodes_before: number of the source's nodes, with all calls inlined.
      nodes_after: number of the columnar signature's nodes.
      parity: the comparison of scores.
      late: the report of the late signature; None if there is none.
      no_late: why there is none although it was asked for; "" otherwise.
      exact: the report of the exact signature, or why there is none.
      not_transcoded: why a server must not answer the source's tf.Examples with the columnar
        signature; None if it may, because both give the same bits.
      stages: the report of the late signature's stages.
      independence: how the rows of each written signature may be batched and cached, by name.
      costs: the expected costs of requests by size, the source's first; empty if not measured.
      compiled: what XLA compiles of it; None if nothing.
      impure: why its answer depends on more than the request and the model's files; None if it does
          not.
    """

    name: str
    source: str
    source_input: str | None
    features: tuple[Feature, ...]
    nodes_before: int
    nodes_after: int
    parity: Parity
    late: LateReport | None = None
    exact: LateReport | str | None = None
    not_transcoded: str | None = None
    stages: StagesReport | None = None
    independence: Mapping[str, Independence] = dataclasses.field(default_factory=dict)
    costs: tuple[Cost, ...] = ()
    compiled: Compiled | None = None
    impure: str | None = None
    no_late: str = ""

    @property
    def user_features(self) -> list[str]:
        """The names of features that are sent once."""
        return [feature.name for feature in self.features if feature.side == Side.USER]

    @property
    def answering(self) -> str:
        """The signature whose cost is compared with the source's."""
        return self.late.signature if self.late else self.name

    @property
    def once(self) -> tuple[str, ...]:
        """The late and the exact signature, if written; they take the user as one row."""
        made = (self.late, self.exact)
        return tuple(each.signature for each in made if isinstance(each, LateReport))

    @classmethod
    def of(
        cls,
        conversion: Conversion,
        parity: Parity,
        independence: Mapping[str, Independence],
        late: LateReport | None = None,
        exact: LateReport | str | None = None,
        stages: StagesReport | None = None,
    ) -> "SignatureReport":
        return cls(
            name=conversion.name,
            source=conversion.source,
            source_input=conversion.source_input,
            features=conversion.features,
            nodes_before=conversion.nodes_before,
            nodes_after=conversion.nodes_after,
            parity=parity,
            late=late,
            exact=exact,
            not_transcoded=_not_transcoded(conversion, parity),
            stages=stages,
            independence={**independence, **(stages.independence if stages else {})},
            impure=conversion.impurity.why if conversion.impurity else None,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "source_input": self.source_input,
            "example_transcoding": self.not_transcoded or True,
            "features": {feature.name: feature_json(feature) for feature in self.features},
            "nodes": {"before": self.nodes_before, "after": self.nodes_after},
            "impure": self.impure,
            "parity": parity_json(self.parity),
            "late": self.late.to_json() if self.late else None,
            "no_late": self.no_late,
            "exact": self.exact.to_json() if isinstance(self.exact, LateReport) else self.exact,
            "parts": self.stages.to_json() if self.stages else None,
            "independence": {k: dataclasses.asdict(v) for k, v in self.independence.items()},
            "costs": [dataclasses.asdict(cost) for cost in self.costs],
            "compiled": dataclasses.asdict(self.compiled) if self.compiled else None,
            "verdict": dict(verdict(self)),
            "refused": list(refused(self)),
        }


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """The result of an export.

    Attributes:
      saved_model: the folder that was read.
      output: the folder that was written.
      signatures: one for each converted signature.
      seconds: duration of the export, proof included.
      mended_variables: variables of the source that only Python's loader fills; every loader fills
        them in the exported model.
      unused_requests: number of recorded requests that were left out, by reason.
    """

    saved_model: str
    output: str
    signatures: tuple[SignatureReport, ...]
    seconds: float
    mended_variables: tuple[str, ...] = ()
    unused_requests: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The contents of colcast.json, without paths of the exporting machine."""
        return {
            "format": FORMAT,
            "signatures": {report.name: report.to_json() for report in self.signatures},
            "mended_variables": list(self.mended_variables),
            "unused_requests": dict(self.unused_requests),
            "notes": self.notes(),
            "seconds": round(self.seconds, 2),
        }

    def print(self, console: Console) -> None:
        """Prints each signature's verdict in five lines."""
        say(console, self.notes())
        for report in self.signatures:
            say(console, [f"{heading + ':':11}{text}" for heading, text in verdict(report)])
        took = f"wrote {self.output} in {self.seconds:.1f} s"
        say(console, [f"{took}; its {PAGE} has all findings"])

    def notes(self) -> list[str]:
        """Remarks on recorded requests, on rows with unusual scores, and on mended variables."""
        lines = [line for report in self.signatures for line in _notes(report)]
        if self.unused_requests:
            lines.append(f"recorded requests left out: {unused_text(self.unused_requests)}")
        if self.mended_variables:
            lines.append(
                f"mended: {len(self.mended_variables)} variables ({self.mended_variables[0]} ...)"
                " are filled on loading now; TensorFlow Serving could not find them in the original"
                " (Keras 3 with tf.saved_model.save; model.export does not have this fault)"
            )
        return lines


def say(console: Console, lines: Iterable[str]) -> None:
    """Prints lines as they are."""
    for line in lines:
        console.print(line, highlight=False, markup=False)


def refuse_export(folder: Path, names: Iterable[str]) -> None:
    """Raises ExportError if the folder is an export that already has one of these signatures."""
    file = folder / FILE
    if file.exists() and not set(names).isdisjoint(json.loads(file.read_bytes())["signatures"]):
        raise ExportError(f"{folder} is an export already; export the original model")


def write_report(folder: Path, report: ExportReport) -> None:
    """Writes colcast.json into a SavedModel folder that is otherwise complete."""
    file = folder / FILE
    file.parent.mkdir(exist_ok=True)
    record = report.to_json() | {"files": manifest(folder)}
    file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _not_transcoded(conversion: Conversion, parity: Parity) -> str | None:
    if conversion.source_input is None:
        return "it takes tensors, not tf.Examples"
    if conversion.context is not None:
        return "it takes ExampleListWithContexts"
    if conversion.impurity and conversion.impurity.writes:
        return f"{conversion.impurity.why}, which must not run twice"
    if conversion.refusing:
        return f"{conversion.refusing}, before the parse op, may refuse a batch of tf.Examples"
    if parity.rows and not parity.identical:
        return "the scores of columns and tf.Examples were not bit-identical"
    return None


def _notes(report: SignatureReport) -> Iterator[str]:
    parity, late, stages = report.parity, report.late, report.stages
    if parity.refused_rows:
        yield f"the model refuses {parity.refused_rows} of the recorded rows: {parity.refusal}"
    if parity.not_finite:
        yield parity.not_finite
    if late:
        for output, worst in late.moderated.items():
            apart = f"{late.signature}: {output} differs by {worst:.1e} on large floats"
            yield f"{apart}; it agrees on floats between -1 and 1"
    if stages and stages.reuse:
        yield stages.reuse.line()
