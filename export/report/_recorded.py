"""Reads the report of an export back from assets.extra/colcast.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colcast.export.convert._features import Feature, Kind, Scalar
from colcast.export.cut._late_report import FrontierTensor, LateReport
from colcast.export.cut._stages_report import Reuse, StagesReport, State
from colcast.export.graph._errors import ExportError
from colcast.export.report._cost import Compiled, Cost
from colcast.export.report._report import FILE, FORMAT, ExportReport, SignatureReport
from colcast.export.rows._independence import Independence
from colcast.export.trials._parity import Parity

_UNSAID = "not recorded by the export that wrote this model"


def read_report(folder: Path) -> ExportReport | None:
    """The report of the export that wrote a SavedModel folder; None if no export wrote it.

    The file names no folders, so the report's `saved_model` is a phrase, and `output` is `folder`.

    Raises:
      ExportError: the file is not one that an export of this format writes.
    """
    file = folder / FILE
    if not file.exists():
        return None
    try:
        recorded = json.loads(file.read_bytes())
        if recorded["format"] != FORMAT:
            raise ExportError(f"{file}: has format {recorded['format']!r}, expected {FORMAT}")
        return ExportReport(
            saved_model="the model that was read",
            output=str(folder),
            signatures=tuple(_signature(*entry) for entry in recorded["signatures"].items()),
            seconds=float(recorded["seconds"]),
            mended_variables=tuple(recorded["mended_variables"]),
            unused_requests=recorded.get("unused_requests", {}),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(
            f"{file}: not what an export writes ({type(error).__name__}: {error}); export the model"
            " again"
        ) from error


def _signature(name: str, recorded: Mapping[str, Any]) -> SignatureReport:
    late, exact, compiled = recorded["late"], recorded.get("exact"), recorded.get("compiled")
    independence = {
        each: Independence(found["rows"], found["why_not"], tuple(found["own_length"]))
        for each, found in recorded.get("independence", {}).items()
    }
    return SignatureReport(
        name=name,
        source=recorded["source"],
        source_input=recorded["source_input"],
        features=tuple(_feature(*entry) for entry in recorded["features"].items()),
        nodes_before=recorded["nodes"]["before"],
        nodes_after=recorded["nodes"]["after"],
        parity=_parity(recorded["parity"]),
        late=_late(late) if late else None,
        exact=_late(exact) if isinstance(exact, Mapping) else exact,
        not_transcoded=_not_transcoded(recorded.get("example_transcoding", _UNSAID)),
        stages=_stages(recorded["parts"], independence) if recorded.get("parts") else None,
        independence=independence,
        costs=tuple(Cost(**cost) for cost in recorded.get("costs", ())),
        compiled=Compiled(compiled["ops"], tuple(compiled["warmed"])) if compiled else None,
        impure=recorded.get("impure"),
        no_late=recorded.get("no_late", ""),
    )


def _not_transcoded(recorded: bool | str) -> str | None:
    return None if recorded is True else str(recorded)


def _feature(name: str, recorded: Mapping[str, Any]) -> Feature:
    default = recorded["default"]
    return Feature(
        name=name,
        kind=Kind(recorded["kind"]),
        dtype=recorded["dtype"],
        shape=tuple(recorded["shape"]),
        default=None if default is None else tuple(map(_scalar, default)),
        row_splits_dtype=recorded.get("row_splits") or "int64",
        used=recorded["used"],
        side=str(recorded["side"]),
    )


def _scalar(value: int | float | str | Mapping[str, str]) -> Scalar:
    if isinstance(value, Mapping):
        return bytes.fromhex(value["hex"])
    return value.encode() if isinstance(value, str) else value


def _parity(recorded: Mapping[str, Any]) -> Parity:
    return Parity(
        rows=recorded["rows"],
        differences=recorded["largest_difference"],
        unstable=tuple(recorded["unstable_outputs"]),
        note=recorded["note"],
        recorded_rows=recorded["recorded_rows"],
        refused_rows=recorded.get("refused_rows", 0),
        refusal=recorded.get("refusal", ""),
        not_finite=recorded.get("not_finite", ""),
    )


def _late(recorded: Mapping[str, Any]) -> LateReport:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in recorded.items()
    }
    fields["frontier"] = tuple(
        FrontierTensor(**{**tensor, "shape": tuple(tensor["shape"])})
        for tensor in recorded["frontier"]
    )
    fields["proof"] = {int(rows): by_output for rows, by_output in recorded["proof"].items()}
    return LateReport(**fields)


def _stages(recorded: Mapping[str, Any], independence: Mapping[str, Independence]) -> StagesReport:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in recorded.items()
    }
    fields["states"] = {
        domain: tuple(State(**{**state, "shape": tuple(state["shape"])}) for state in states)
        for domain, states in recorded["states"].items()
    }
    fields["independence"] = {
        name: independence[name] for name in recorded["signatures"] if name in independence
    }
    fields["reuse"] = Reuse(**recorded["reuse"]) if recorded.get("reuse") else None
    return StagesReport(**fields)
