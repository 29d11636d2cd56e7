"""Predicts an export's result by converting in memory, without rows or variables."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from colcast.export.convert._folder import check_size, choose_meta_graph, read_saved_model
from colcast.export.convert._object_graph import publish_signature
from colcast.export.convert._signature import add_columnar_signature, new_names
from colcast.export.convert._variables import fill_variables
from colcast.export.report._recorded import features_table
from colcast.export.report._report import SignatureReport
from colcast.export.trials._feature_domains import Patterns, mark_domains, read_domains
from colcast.export.trials._parity import Parity
from rich.console import Console

_NOT_COMPARED = Parity(note="no export has run")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an export would add.

    Attributes:
      signatures: reports on the signatures it would write, without parity.
      outputs: the output names of each signature, by its name.
      others: signatures of the model that it would not convert.
      mended_variables: variables that the exported model would fill on loading.
    """

    signatures: tuple[SignatureReport, ...]
    outputs: dict[str, tuple[str, ...]]
    others: tuple[str, ...]
    mended_variables: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values, with signatures in the form of colcast.json."""
        entries = {report.name: report.to_json() for report in self.signatures}
        for name, entry in entries.items():
            entry["outputs"] = list(self.outputs[name])
            del entry["verdict"], entry["refused"]  # no export has run
        return {
            "signatures": entries,
            "others": list(self.others),
            "mended_variables": list(self.mended_variables),
        }

    def print(self, console: Console) -> None:
        """Prints each signature's features, columns and outputs."""
        lines = []
        for report in self.signatures:
            console.print(features_table(report.name, report.to_json()))
            columns = sum(len(feature.columns) for feature in report.features)
            outputs = ", ".join(self.outputs[report.name])
            how = "an export with --late" if report.source_input is None else "an export"
            lines.append(f"{how} would add {report.name}: {columns} columns -> {outputs}")
        if self.mended_variables:
            lines.append(
                f"it would repair {len(self.mended_variables)} variables"
                f" ({self.mended_variables[0]} ...), which TensorFlow Serving cannot find"
            )
        if self.others:
            lines.append(f"other signatures, for --signature: {', '.join(self.others)}")
        lines.append("not exported yet: nothing was compared, nothing was written")
        for line in lines:
            console.print(line, highlight=False, markup=False)


def plan_export(
    saved_model: Path,
    signatures: Sequence[str],
    user_features: Sequence[str] = (),
    domains: Patterns = MappingProxyType({}),
    tags: Sequence[str] = ("serve",),
) -> Plan:
    """Converts signatures like `export_saved_model`, but keeps only the findings.

    Args:
      saved_model: the folder with saved_model.pb.
      signatures: the signatures to convert, as `s` or `s=name`.
      user_features: names or patterns of the user's features.
      domains: names or patterns of further domains' features.
      tags: tags of the MetaGraph to convert.

    Raises:
      ExportError: an export would raise the same error. A failed proof is not predicted.
    """
    proto = read_saved_model(saved_model)
    meta_graph = choose_meta_graph(proto, tags)
    present = sorted(key for key in meta_graph.signature_def if not key.startswith("__"))
    mended = fill_variables(meta_graph)
    names = new_names(signatures)
    conversions = [add_columnar_signature(meta_graph, old, new) for old, new in names]
    patterns = read_domains(domains, user_features, ())
    conversions = mark_domains(conversions, patterns, None)
    for conversion in conversions:
        publish_signature(meta_graph, conversion.name, conversion.source)
    check_size(proto)
    converted = {old for old, _ in names}
    return Plan(
        signatures=tuple(SignatureReport.of(c, _NOT_COMPARED, {}) for c in conversions),
        outputs={
            c.name: tuple(sorted(meta_graph.signature_def[c.name].outputs)) for c in conversions
        },
        others=tuple(name for name in present if name not in converted),
        mended_variables=tuple(mended),
    )
