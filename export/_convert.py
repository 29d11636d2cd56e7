"""The conversion of a SavedModel, from folder to folder."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export._errors import ExportError
from colcast.export._features import Side
from colcast.export._folder import (
    choose_meta_graph,
    read_saved_model,
    variables_bytes,
    write_graph,
    written_beside,
)
from colcast.export._generate import RowSource
from colcast.export._keys import find_keys
from colcast.export._mend import mend_variables
from colcast.export._parity import Parity, Probe, prove_parse, prove_scores, session_config
from colcast.export._report import ExportReport, SignatureReport, write_report
from colcast.export._rows import Columns
from colcast.export._signature import Conversion, add_columnar_signature
from colcast.export.late import LateReport, add_late_signature

COLUMNAR = "columnar"
_REDRAWS = 20  # of rows that the model refuses


def export_saved_model(
    saved_model: str | Path,
    output: str | Path,
    *,
    signature: str = "serving_default",
    user_features: Sequence[str] = (),
    late: bool = False,
    tolerance: float = 1e-5,
    tags: Sequence[str] = ("serve",),
    most_parity_bytes: int = 512 << 20,
    seed: int = 0,
) -> ExportReport:
    """Writes a copy of a SavedModel that has a columnar signature, too.

    Variables, assets and everything else are copied as files; the graph's present nodes and
    signatures stay as they are. The folder appears when everything is written and proven.

    Args:
      saved_model: the folder with saved_model.pb.
      output: the folder to write; must not exist, or be empty.
      signature: the signature to convert; it parses tf.Example.
      user_features: names or patterns (`user_*`) of the features that are the same on every row
        of a request.
      late: also add `columnar_late`, which computes the user's part once a request.
      tolerance: largest relative difference of the late signature's float outputs.
      tags: of the MetaGraph to convert.
      most_parity_bytes: scores are compared where the variables, which have to be loaded for it,
        take no more than this; what is parsed is compared always.
      seed: of the generated rows.

    Returns:
      What was found, done and proven.

    Raises:
      ExportError: the model cannot be converted, or the proof fails. Nothing is written then.
    """
    source, target = Path(saved_model), Path(output)
    if late and not user_features:
        raise ExportError("late expansion needs to know the user features: name some")
    start = time.monotonic()
    proto = read_saved_model(source)
    with written_beside(source, target) as folder:
        meta_graph = choose_meta_graph(proto, tags)
        mended = mend_variables(meta_graph)
        conversion = add_columnar_signature(meta_graph, signature, COLUMNAR, user_features)
        rows = RowSource(conversion.features, find_keys(meta_graph, source / "assets"), seed)
        prove_parse(conversion.cut, rows)
        write_graph(folder, proto)
        size = variables_bytes(source)
        parity, late_report = Parity(note=_not_compared(size)), None
        if late or size <= most_parity_bytes:
            with _loaded(folder, tags) as session:
                probe = Probe(session, meta_graph, conversion)
                fits = rows.fit(probe.accepts)
                parity = prove_scores(probe, rows)
                if late:
                    _check_fits(fits)
                    late_report = _add_late(meta_graph, session, conversion, probe, rows, tolerance)
                    write_graph(folder, proto)
        report = ExportReport(
            saved_model=str(source),
            output=str(target),
            signatures=(SignatureReport.of(conversion, parity, late_report),),
            mended_variables=tuple(mended),
            seconds=time.monotonic() - start,
        )
        write_report(folder, report)
    return report


@contextmanager
def _loaded(folder: Path, tags: Sequence[str]) -> Iterator[Any]:
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=session_config()) as session,
    ):
        tf.compat.v1.saved_model.loader.load(session, list(tags), str(folder))
        yield session


def _add_late(
    meta_graph: Any,
    session: Any,
    conversion: Conversion,
    probe: Probe,
    rows: RowSource,
    tolerance: float,
) -> LateReport:
    def accepted(count: int) -> Columns:
        for _ in range(_REDRAWS):
            drawn = rows.draw(count)
            if probe.accepts(drawn):
                return drawn.columns()
        raise ExportError(f"the model refuses {_REDRAWS} times {count} generated rows")

    user = [feature.name for feature in conversion.features if feature.side is Side.USER]
    return add_late_signature(
        meta_graph,
        session,
        user_features=user,
        rows=accepted,
        columnar_signature=conversion.name,
        late_signature=f"{conversion.name}_late",
        tolerance=tolerance,
    )


def _check_fits(fits: bool) -> None:
    if not fits:
        raise ExportError(
            "late expansion is found by running the model, which refuses every generated row"
        )


def _not_compared(size: int) -> str:
    return f"the variables ({size / 2**20:,.0f} MB) are not loaded to compare scores"
