"""Converts a SavedModel folder into a new folder."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from colcast.export._collection import uncollected
from colcast.export._loaded_model import LoadedModel
from colcast.export._options import ExportOptions
from colcast.export.convert._features import Kind, Side
from colcast.export.convert._folder import (
    choose_meta_graph,
    loaded,
    read_saved_model,
    variables_bytes,
    write_graph,
    written_beside,
)
from colcast.export.convert._object_graph import make_default, publish_signature
from colcast.export.convert._rounded_tables import write_rounded_tables
from colcast.export.convert._signature import Conversion, add_columnar_signature, new_names
from colcast.export.convert._variables import fill_variables
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._stages_report import StagesReport
from colcast.export.graph._comparison import DiffersError
from colcast.export.graph._errors import ExportError
from colcast.export.graph._impure import find_impure
from colcast.export.graph._op_defs import provide_ops
from colcast.export.report._cost import Requests, measure_written
from colcast.export.report._page import render
from colcast.export.report._report import (
    PAGE,
    ExportReport,
    SignatureReport,
    refuse_export,
    write_report,
)
from colcast.export.trials._both_signatures import BothSignatures
from colcast.export.trials._feature_domains import mark_domains
from colcast.export.trials._generate import RowSource
from colcast.export.trials._parity import AFFECT, Parity, prove_parse
from colcast.export.trials._traffic import Recorded, read_tensor_traffic, read_traffic
from colcast.export.trials._vocabulary import known_values
from colcast.export.warmup import EVERY_SERVER, NATIVE_SERVER, write_warmup

Progress = Callable[[str], None]


def export_saved_model(
    saved_model: str | Path,
    output: str | Path,
    *,
    progress: Progress = lambda _: None,
    **options: Any,
) -> ExportReport:
    """Writes a copy of a SavedModel with additional columnar signatures.

    All other files (variables, assets) are copied; the graph's existing nodes and signatures stay
    unchanged. The output folder appears only after everything is written and proved.

    Args:
      saved_model: the folder with saved_model.pb.
      output: the folder to write; must not exist, or be empty.
      progress: called with the name of each step as it begins.
      **options: the fields of `ExportOptions`.

    Returns:
      A report on the signatures, their features and the proofs.

    Raises:
      ExportError: the model cannot be converted, or the proof fails; nothing is then written.
    """
    with uncollected():
        return _Export(Path(saved_model), ExportOptions(**options), progress).write(Path(output))


@dataclass(frozen=True)
class _Converted:
    """The report on a converted signature, its requests to measure, and its warm-up requests."""

    report: SignatureReport
    requests: Requests = field(default_factory=dict)
    warmup: Sequence[Any] = ()
    warmup_once: Sequence[Any] = ()


class _Export:
    def __init__(self, source: Path, options: ExportOptions, progress: Progress) -> None:
        self._source, self._options, self._progress = source, options, progress
        self._start = time.monotonic()
        progress(f"reading {source}")
        self._proto = read_saved_model(source)

    def write(self, target: Path) -> ExportReport:
        options = self._options
        with written_beside(self._source, target) as folder:
            self._meta_graph = choose_meta_graph(self._proto, options.tags)
            mended = fill_variables(self._meta_graph)
            self._convert()
            converted = self._try_out(folder)
            reports = [each.report for each in converted]
            _publish(self._meta_graph, reports, options.default)
            write_graph(folder, self._proto)
            if options.table_type:
                self._progress(f"rounding tables to {options.table_type}")
                write_rounded_tables(folder, self._meta_graph)
            write_warmup(folder, EVERY_SERVER, [r for c in converted for r in c.warmup])
            write_warmup(folder, NATIVE_SERVER, [r for c in converted for r in c.warmup_once])
            report = ExportReport(
                saved_model=str(self._source),
                output=str(target),
                signatures=tuple(self._measured(folder, converted)),
                mended_variables=tuple(mended),
                unused_requests=next((one.unused for one in self._traffic.values()), {}),
                seconds=time.monotonic() - self._start,
            )
            write_report(folder, report)
            (folder / PAGE).write_text(render(report))
        return report

    def _convert(self) -> None:
        """Adds the columnar signatures and checks that columns give what the parse ops output."""
        options, meta_graph = self._options, self._meta_graph
        names = new_names(options.signatures)
        refuse_export(self._source, (new for _, new in names))
        conversions = [add_columnar_signature(meta_graph, old, new) for old, new in names]
        _check_use(conversions, late=options.late, warmup=bool(options.warmup))
        file = options.examples
        self._traffic = {c.name: _read_traffic(Path(file), c) for c in conversions if file}
        first = self._traffic.get(conversions[0].name)
        conversions = mark_domains(conversions, options.patterns(), first)
        impure = find_impure(meta_graph, options.unserved_signatures)
        self._conversions = [replace(c, impurity=impure.get(c.name)) for c in conversions]
        _check_user(self._conversions, late=options.late)
        self._rows = {c.name: self._generated(c) for c in self._conversions}
        for conversion in self._conversions:
            if conversion.cut:
                prove_parse(conversion.cut, self._rows[conversion.name], conversion.context)

    def _generated(self, conversion: Conversion) -> RowSource:
        known = known_values(self._meta_graph, conversion, self._source / "assets")
        return RowSource(conversion.features, known, self._options.seed)

    def _try_out(self, folder: Path) -> list[_Converted]:
        """Runs the converted signatures and adds late ones, unless the variables are too large."""
        options, size = self._options, variables_bytes(self._source)
        needs_a_run = options.late or options.warmup or options.examples
        if not needs_a_run and size > options.most_parity_bytes:
            why = f"the variables ({size / 2**20:,.0f} MB) are too large to be loaded"
            parity = Parity(note=why)
            return [_Converted(SignatureReport.of(c, parity, {})) for c in self._conversions]
        provide_ops(self._meta_graph)
        sources, new = ({getattr(c, of) for c in self._conversions} for of in ("source", "name"))
        load = partial(loaded, folder, self._meta_graph)
        # TensorFlow copies a session's functions for each new op and each new set of fetches. Only
        # the sources call functions, so they have their own session if memory allows it.
        apart = size <= options.most_parity_bytes
        with (
            load(sources) if apart else nullcontext() as apart_session,
            load(new if apart else sources | new) as session,
        ):
            of_sources = apart_session or session
            return [self._run(of_sources, session, c) for c in self._conversions]

    def _run(self, of_sources: Any, session: Any, conversion: Conversion) -> _Converted:
        """Compares scores, and adds the signatures that compute the user part once."""
        name, options = conversion.name, self._options
        self._progress(f"{name}: finding rows that the model accepts")
        traffic = self._traffic.get(name)
        probe = BothSignatures(of_sources, session, self._meta_graph, conversion)
        model = LoadedModel(probe, session, self._meta_graph, conversion, self._rows[name], traffic)
        self._progress(f"{name}: comparing scores")
        parity = model.parity()
        self._progress(f"{name}: finding whether its rows are independent")
        independence = {name: model.independence}
        made, no_late = self._add_late(model, conversion) if options.late else ((), "")
        for each in made:
            if isinstance(each, LateReport):
                found = model.independence_of(each.signature, options.tolerance)
                independence[each.signature] = found
        report = SignatureReport.of(conversion, parity, independence, *made)
        report = replace(report, no_late=no_late, compiled=model.compiled(options.warmup))
        requests: Requests = {}
        if options.measure_seconds:
            requests = model.requests(report.answering)
        warmup = model.warmup(options.warmup)
        warmup_once = model.warmup_once(options.warmup, report.once)
        return _Converted(report, requests, warmup, warmup_once)

    def _add_late(
        self, model: LoadedModel, conversion: Conversion
    ) -> tuple[tuple[LateReport, LateReport | str, StagesReport] | tuple[()], str]:
        """Adds the late, exact and stages' signatures, or says why there are none."""
        name = conversion.name
        if why := _why_no_late(conversion):
            self._progress(f"{name}: no late signature: {why}")
            return (), why
        own, late_name, exact_name = model.independence, f"{name}_late", f"{name}_exact"
        affected = own.why_not.startswith(AFFECT)
        if affected:
            self._progress(f"{name}: {own.why_not}: its requests are neither joined nor split")
        self._progress(f"{late_name}: searching, writing and proving")
        observed = model.observe(self._options.tolerance)
        try:
            late = model.add_late(late_name, observed)
        except DiffersError as error:
            if not affected:
                raise
            needs = "outputs without ranks" if error.exact else "a larger --max-relative-difference"
            why = f"{own.why_not}: late needs {needs}, columns are exported ({error.__cause__})"
            self._progress(f"{name}: no late signature: {why}")
            return (), why
        self._progress(f"{exact_name}: searching, writing and proving")
        exact = model.add_exact(exact_name, observed, always=self._options.exact == "always")
        self._progress(f"{name}: searching, writing and proving the stages")
        return (late, exact, model.add_stages(late_name, observed)), ""

    def _measured(self, folder: Path, converted: Sequence[_Converted]) -> list[SignatureReport]:
        """Adds the costs of requests to the reports."""
        options = self._options
        requests = {c.report.name: c.requests for c in converted if c.requests}
        if not requests:
            return [each.report for each in converted]
        self._progress("measuring what a request costs")
        costs = measure_written(folder, self._meta_graph, requests, options.measure_seconds)
        return [replace(c.report, costs=costs.get(c.report.name, ())) for c in converted]


def _check_user(conversions: Sequence[Conversion], *, late: bool) -> None:
    sides = [feature.side for conversion in conversions for feature in conversion.features]
    if late and Side.USER not in sides:
        raise ExportError(
            "late expansion needs to know the user features: name them with --user-features"
        )
    why = list(map(_why_no_late, conversions))
    if late and all(why):
        raise ExportError(f"signature {conversions[0].source!r}: {why[0]}")


def _why_no_late(conversion: Conversion) -> str:
    """Why a signature has no late form; "" if it may have one."""
    rows = [feature for feature in conversion.features if feature.kind is not Kind.WHOLE]
    if all(feature.side == Side.USER for feature in rows):
        names = ", ".join(sorted(feature.name for feature in rows))
        return (
            f"every feature is the user's ({names}); a late signature needs an item feature, whose"
            " rows are the candidates"
        )
    if all(feature.side != Side.USER for feature in conversion.features):
        return "no feature is the user's"
    return ""


def _read_traffic(file: Path, conversion: Conversion) -> Recorded:
    if conversion.source_input is None:
        return read_tensor_traffic(file, conversion.features)
    lists = conversion.context is not None
    return read_traffic(file, conversion.source_input, conversion.features, lists=lists)


def _check_use(conversions: Sequence[Conversion], *, late: bool, warmup: bool) -> None:
    for conversion in conversions:
        if conversion.source_input is None and not late and not warmup:
            raise ExportError(
                f"signature {conversion.source!r} already takes tensors"
                f" ({', '.join(map(repr, (f.name for f in conversion.features)))}): serve it as it"
                " is, or add --late, which computes the user part once per request, or --warmup,"
                " which writes warm-up requests"
            )


def _publish(meta_graph: Any, reports: Sequence[SignatureReport], default: str | None) -> None:
    """Makes the new signatures visible to Python, and one of them the default."""
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
            raise ExportError(f"{default!r} is not a new signature; new ones are {', '.join(new)}")
        make_default(meta_graph, default)
