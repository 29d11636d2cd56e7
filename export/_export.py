"""The conversion of a SavedModel, from folder to folder."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from colcast.export._loaded_model import LoadedModel
from colcast.export.convert._features import Side
from colcast.export.convert._folder import (
    choose_meta_graph,
    read_saved_model,
    variables_bytes,
    write_graph,
    written_beside,
)
from colcast.export.convert._object_graph import publish_signature
from colcast.export.convert._op_libraries import provide_ops
from colcast.export.convert._serving_default import make_default
from colcast.export.convert._signature import Conversion, add_columnar_signature
from colcast.export.convert._variables import fill_variables
from colcast.export.cut import LateReport, StagesReport
from colcast.export.graph._errors import ExportError
from colcast.export.graph._impure import find_impure
from colcast.export.graph._sessions import loaded
from colcast.export.report._cost import Requests, measure_written
from colcast.export.report._page import render
from colcast.export.report._report import PAGE, ExportReport, SignatureReport, write_report
from colcast.export.trials._feature_domains import Patterns, mark_domains, read_domains
from colcast.export.trials._generate import RowSource
from colcast.export.trials._parity import Parity, prove_parse
from colcast.export.trials._tensor_traffic import TensorTraffic, read_tensor_traffic
from colcast.export.trials._traffic import Traffic, read_traffic
from colcast.export.trials._vocabulary import known_values
from colcast.export.warmup import EVERY_SERVER, NATIVE_SERVER, write_warmup

COLUMNAR = "columnar"
Progress = Callable[[str], None]


def export_saved_model(
    saved_model: str | Path,
    output: str | Path,
    *,
    signatures: Sequence[str] = ("serving_default",),
    user_features: Sequence[str] = (),
    domains: Patterns = MappingProxyType({}),
    late: bool = False,
    context_features: Sequence[str] = (),
    exact: str = "auto",
    default: str | None = None,
    examples: str | Path | None = None,
    warmup: Sequence[int] = (),
    tolerance: float = 1e-5,
    tags: Sequence[str] = ("serve",),
    most_parity_bytes: int = 512 << 20,
    seed: int = 0,
    unserved_signatures: Sequence[str] = (),
    measure_seconds: float = 0.0,
    progress: Progress = lambda _: None,
) -> ExportReport:
    """Writes a copy of a SavedModel that has a columnar signature, too.

    Variables, assets and everything else are copied as files; the graph's present nodes and
    signatures stay as they are. The folder appears when everything is written and proven.

    Args:
      saved_model: the folder with saved_model.pb.
      output: the folder to write; must not exist, or be empty.
      signatures: those to convert; they parse tf.Example or, with `late`, take tensors. The first
        becomes `columnar`, another one `s` `columnar_s`; `s=name` chooses the name.
      user_features: names or patterns (`user_*`) of the features that are the same on every row
        of a request, beside those of an ExampleListWithContext's context; `auto`: those that are
        the same in all recorded requests.
      domains: names or patterns of the features of each other domain, such as `shop`; what no
        domain has is an item's.
      late: also add `columnar_late`, which computes the user's part once per request, and
        `columnar_exact`, which does so as far as scores stay equal to the last bit, and, where the
        model allows it, the stages `columnar_user`, `columnar_item`, `columnar_<domain>` and
        `columnar_pair`.
      context_features: names or patterns of features that depend on user and item or on the moment
        (position, distance): the domain `candidate`, which has no stage.
      exact: "auto" writes `columnar_exact` where it was measured to be faster than `columnar`;
        "always" wherever an op can move.
      default: the new signature that becomes `serving_default`; the present one is kept as
        `serving_examples`.
      examples: TFRecord file of recorded tf.Examples, PredictRequests or PredictionLogs, which are
        scored for the proof beside generated rows.
      warmup: row counts of the warm-up requests to write.
      tolerance: largest relative difference of the late signature's float outputs.
      tags: of the MetaGraph to convert.
      most_parity_bytes: scores are compared where the variables, which have to be loaded for it,
        take no more than this; what is parsed is compared always.
      seed: of the generated rows.
      unserved_signatures: those that no server of the model serves (--unserved_signatures there):
        a variable that only they write is as good as a constant.
      measure_seconds: of CPU, for measuring what requests cost; 0 measures nothing.
      progress: told each step as it begins.

    Returns:
      What was found, done and proven.

    Raises:
      ExportError: the model cannot be converted, or the proof fails. Nothing is written then.
    """
    source, target = Path(saved_model), Path(output)
    if exact not in ("auto", "always"):
        raise ExportError(f"exact: expected 'auto' or 'always', got {exact!r}")
    patterns = read_domains(domains, user_features, context_features)
    _check_options(late, patterns[Side.CANDIDATE], warmup, tolerance)
    start = time.monotonic()
    progress(f"reading {source}")
    proto = read_saved_model(source)
    with written_beside(source, target) as folder:
        meta_graph = choose_meta_graph(proto, tags)
        mended = fill_variables(meta_graph)
        conversions = [
            add_columnar_signature(meta_graph, old, new) for old, new in new_names(signatures)
        ]
        _check_use(conversions, late=late, warmup=bool(warmup))
        traffic = _read_traffic(Path(examples), conversions[0]) if examples else None
        conversions = mark_domains(conversions, patterns, traffic)
        impure = find_impure(meta_graph, unserved_signatures)
        conversions = [dataclasses.replace(c, impurity=impure.get(c.name)) for c in conversions]
        _check_user(conversions, late=late)
        reports, logs, logs_once = [], [], []
        requests: dict[str, Requests] = {}
        sources = {
            c.name: RowSource(c.features, known_values(meta_graph, c, source / "assets"), seed)
            for c in conversions
        }
        for conversion in conversions:
            if conversion.cut:
                prove_parse(conversion.cut, sources[conversion.name], conversion.context)
        write_graph(folder, proto)
        size = variables_bytes(source)
        if late or warmup or examples or size <= most_parity_bytes:
            provide_ops(meta_graph)
            with loaded(folder, tags) as session:
                for conversion in conversions:
                    progress(f"{conversion.name}: finding rows that the model accepts")
                    rows = sources[conversion.name]
                    model = LoadedModel(session, meta_graph, conversion, rows, traffic)
                    progress(f"{conversion.name}: comparing scores")
                    parity = model.parity()
                    options = _LateOptions(tolerance, exact == "always", progress)
                    made = _add_late(model, conversion, options) if late else ()
                    once = [each.signature for each in made if isinstance(each, LateReport)]
                    progress(f"{conversion.name}: following its rows")
                    independence = model.independence([conversion.name, *once], tolerance)
                    found = SignatureReport.of(conversion, parity, independence, *made)
                    compiled = model.compiled(warmup)
                    found = dataclasses.replace(found, compiled=compiled)
                    if measure_seconds:
                        found = _with_user_share(model, found)
                        requests[found.name] = model.requests(found.answering)
                    reports.append(found)
                    logs += model.warmup(warmup)
                    logs_once += model.warmup_once(warmup, reports[-1].once)
        else:
            note = f"the variables ({size / 2**20:,.0f} MB) are not loaded to compare scores"
            reports = [SignatureReport.of(c, Parity(note=note), {}) for c in conversions]
        _publish(meta_graph, reports, default)
        write_graph(folder, proto)
        write_warmup(folder, EVERY_SERVER, logs)
        write_warmup(folder, NATIVE_SERVER, logs_once)
        if requests:
            progress("measuring what a request costs")
            costs = measure_written(folder, tags, requests, measure_seconds)
            reports = [dataclasses.replace(r, costs=costs.get(r.name, ())) for r in reports]
        report = ExportReport(
            saved_model=str(source),
            output=str(target),
            signatures=tuple(reports),
            mended_variables=tuple(mended),
            unused_requests=traffic.unused if traffic else {},
            seconds=time.monotonic() - start,
        )
        write_report(folder, report)
        (folder / PAGE).write_text(render(report))
    return report


def _check_options(
    late: bool,
    context_features: Sequence[str],
    warmup: Sequence[int],
    tolerance: float,
) -> None:
    if context_features and not late:
        raise ExportError("--context-features say what the last stage takes: add --late")
    if min(warmup, default=1) < 1:
        raise ExportError(f"--warmup: requests have 1 row or more, got {min(warmup)}")
    if not 0 <= tolerance < math.inf:
        raise ExportError(f"--tolerance: expected 0 or more, got {tolerance}")


def _check_user(conversions: Sequence[Conversion], *, late: bool) -> None:
    sides = [feature.side for conversion in conversions for feature in conversion.features]
    if late and Side.USER not in sides:
        raise ExportError(
            "late expansion needs to know the user features: name them with --user-features"
        )


def _read_traffic(file: Path, conversion: Conversion) -> Traffic | TensorTraffic:
    if conversion.source_input is None:
        return read_tensor_traffic(file, conversion.features)
    names = [feature.name for feature in conversion.features]
    return read_traffic(file, conversion.source_input, names, lists=conversion.context is not None)


def _check_use(conversions: Sequence[Conversion], *, late: bool, warmup: bool) -> None:
    for conversion in conversions:
        if conversion.source_input is None and not late and not warmup:
            raise ExportError(
                f"signature {conversion.source!r} takes tensors already"
                f" ({', '.join(map(repr, (f.name for f in conversion.features)))}): serve it as it"
                " is, or add --late, which computes the user's part once, or --warmup for requests"
                " that a server runs before it serves"
            )


def new_names(signatures: Sequence[str]) -> list[tuple[str, str]]:
    """Source and new name of each signature to convert."""
    names: list[tuple[str, str]] = []
    for signature in signatures:
        source, _, name = signature.partition("=")
        names.append((source, name or (f"{COLUMNAR}_{source}" if names else COLUMNAR)))
    return names


@dataclasses.dataclass(frozen=True)
class _LateOptions:
    """How late signatures are added."""

    tolerance: float
    always_exact: bool
    progress: Progress


def _add_late(
    model: LoadedModel, conversion: Conversion, options: _LateOptions
) -> tuple[LateReport, LateReport | str, StagesReport]:
    name = f"{conversion.name}_late"
    options.progress(f"{name}: searching, writing and proving")
    observed = model.observe(options.tolerance)
    late = model.add_late(name, observed)
    exact_name = f"{conversion.name}_exact"
    options.progress(f"{exact_name}: searching, writing and proving")
    exact = model.add_exact(exact_name, always=options.always_exact)
    options.progress(f"{conversion.name}: searching, writing and proving the stages")
    return late, exact, model.add_stages(name, observed)


def _with_user_share(model: LoadedModel, report: SignatureReport) -> SignatureReport:
    share = None if report.late or not report.user_features else model.user_share()
    return dataclasses.replace(report, user_share=share)


def _publish(meta_graph: Any, reports: Sequence[SignatureReport], default: str | None) -> None:
    """Shows the new signatures to Python, and one of them as the default."""
    new = {name: report.source for report in reports for name in (report.name, *report.once)}
    stages = {
        name: report.source
        for report in reports
        if report.stages
        for name in report.stages.signatures
    }
    for name, source in {**new, **stages}.items():
        publish_signature(meta_graph, name, source)
    if default is not None:
        if default not in new:
            raise ExportError(f"{default!r} is no new signature; there are {', '.join(new)}")
        make_default(meta_graph, default)
