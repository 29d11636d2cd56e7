"""Proves that a columnar signature answers like its source."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._signature import CutGraph
from colcast.export.graph._comparison import (
    CANCELLED,
    comparable,
    difference,
    non_finite_hint,
    relative_difference,
)
from colcast.export.graph._errors import ExportError
from colcast.export.graph._sessions import session_config
from colcast.export.trials._both_signatures import BothSignatures, Outputs
from colcast.export.trials._generate import Accepts, RowSource, accepted_together
from colcast.export.trials._rows import Rows

_BATCHES = (1, 2, 7, 50, 140)  # number of rows in each comparison
# How often to repeat runs if outputs differ: a model may occasionally draw random numbers.
_REPEATS = range(3)
_LARGEST_DIFFERENCE = 1e-6  # relative; reordered sums differ by as much


@dataclasses.dataclass(frozen=True)
class Parity:
    """The comparison of two signatures.

    Attributes:
      rows: number of rows that both signatures scored.
      recorded_rows: number of recorded rows among them.
      differences: largest absolute difference by output; 0.0 if bit-identical.
      unstable: outputs that differ between two runs of one signature and so prove nothing.
      note: why scores were not compared; None if they were. Parsed features are always compared.
      refused_rows: number of recorded rows that the model refused.
      refusal: the model's error for the first of them.
      not_finite: a note about generated rows with NaN or infinite scores.
    """

    rows: int = 0
    differences: Mapping[str, float] = dataclasses.field(default_factory=dict)
    unstable: tuple[str, ...] = ()
    note: str | None = None
    recorded_rows: int = 0
    refused_rows: int = 0
    refusal: str = ""
    not_finite: str = ""

    @property
    def identical(self) -> bool:
        """Whether every score was bit-identical."""
        return self.rows > 0 and not self.unstable and not any(self.differences.values())


def prove_parse(cut: CutGraph, source: RowSource, context: Collection[str] | None = None) -> None:
    """Compares the parse ops' outputs with the tensors that replace them, bit for bit.

    Raises:
      ExportError: they differ; names the feature.
    """
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(cut.graph_def, name="")
    tensors = [
        tuple(name if ":" in name else f"{name}:0" for name in pair[1:]) for pair in cut.pairs
    ]
    with tf.compat.v1.Session(graph=graph, config=session_config()) as session:
        for count in _BATCHES:
            rows = source.draw(count)
            columns = rows.columns()
            feeds = {tensor: columns[name] for name, tensor in cut.columns.items()}
            feeds[cut.serialized] = (
                rows.examples
                if context is None
                else [rows[i : i + 1].list_with_context(context) for i in range(count)]
            )
            for (feature, *_), (before, after) in zip(
                cut.pairs, session.run(tensors, feeds), strict=True
            ):
                if apart(before, after) != 0.0:
                    raise ExportError(
                        f"feature {feature!r} differs from what the parse op gives for the same"
                        f" {count} rows: {_shown(after)}, expected {_shown(before)}"
                    )


def prove_scores(probe: BothSignatures, batches: Iterable[Rows]) -> Parity:
    """Compares all outputs of the two signatures, batch by batch.

    Args:
      probe: runs both.
      batches: rows that the source accepts.

    Raises:
      ExportError: an output differs by more than another order of summation explains.
    """
    compared = 0
    differences: dict[str, float] = {}
    unstable: set[str] = set()
    for rows in batches:
        expected, given = probe.source(rows), probe.columnar(rows)
        again: list[tuple[Outputs, Outputs]] = []
        for output, value in expected.items():
            found = apart(value, given[output])
            if found != 0.0:
                again = again or [(probe.source(rows), probe.columnar(rows)) for _ in _REPEATS]
                if any(
                    apart(value, source[output]) or apart(given[output], columnar[output])
                    for source, columnar in again
                ):
                    unstable.add(output)
                    continue
                _check(found, output, value, given[output])
            differences[output] = max(found, differences.get(output, 0.0))
        compared += len(rows)
    note = None if compared else f"the model refuses every generated row: {probe.refusal}"
    stable = {name: value for name, value in differences.items() if name not in unstable}
    return Parity(compared, stable, tuple(sorted(unstable)), note)


def generated_batches(accepts: Accepts, source: RowSource) -> Iterator[Rows]:
    for count in _BATCHES:
        rows = accepted_together(source.draw(count), accepts)
        if len(rows):
            yield rows


def apart(expected: Any, given: Any) -> float:
    """The largest difference."""
    return float(difference(comparable(expected), comparable(given)).max(initial=0.0))


def _check(found: float, output: str, expected: Any, given: Any) -> None:
    """Raises ExportError for a difference that the order of summation does not explain."""
    if found > _allowed(expected):
        raise ExportError(
            f"output {output!r} differs from the source's for the same {len(expected)} rows by"
            f" {found:.3g}: {_shown(given)}, expected {_shown(expected)}"
            f"{non_finite_hint(expected, given)}"
        )


def _allowed(expected: Any) -> float:
    """The largest difference that another order of summation may explain."""
    expected = comparable(expected)
    if expected.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    return _LARGEST_DIFFERENCE * float(finite.max(initial=0.0))


def _shown(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype} {list(array.shape)} {np.array2string(array, threshold=8)}"


Run = Callable[[Rows], Mapping[str, Any]]
Scale = Callable[[Any], Any]

AFFECT = "candidates affect each other"
_ALONE = 4  # rows with the shortest lists that are scored alone


def scored_alike(
    run: Run, rows: Rows, tolerance: float, own_length: Collection[str] = ()
) -> bool | None:
    """Whether candidates score the same together, alone, reordered and in slices.

    If large floats nearly cancel out, rounding errors hide other differences. The scores must
    therefore also agree after floats are made small.

    Args:
        run: runs the signature on rows of one request.
        rows: rows of one request, which the model accepts.
        tolerance: the largest allowed difference between floats, relative to the output's largest
            value (at least 1), because a small value may be the difference of large ones. For small
            floats, it is relative to the output's median.
        own_length: features whose longest list in a run may affect scores. Every run gets the rows
            that have the longest ones.

    Returns:
        Whether all scores agree; None if the model refuses some of the candidates.
    """
    longest = [int(np.argmax(rows.cells[name].counts)) for name in own_length]
    try:
        if _largest_difference(run, rows, np.max, longest) > max(tolerance, CANCELLED):
            return False
        return bool(_largest_difference(run, rows.moderate(), np.median, longest) <= tolerance)
    except (ExportError, tf.errors.OpError):
        return None


def _largest_difference(run: Run, rows: Rows, scale: Scale, beside: Sequence[int]) -> float:
    """The largest difference between scores together and separately; infinite if shapes differ.

    Rows are scored separately with the rows `beside` them.
    """
    together = run(rows)
    worst = 0.0
    for own in _groups(rows):
        apart = run(rows.take([*own, *beside]))
        for output, whole in together.items():
            given, expected = np.atleast_1d(apart[output])[: len(own)], np.atleast_1d(whole)
            if expected.shape[:1] != (len(rows),) or given.shape != expected[own].shape:
                return np.inf
            floor = _scale(expected, scale)
            worst = max(worst, relative_difference(expected[own], given, floor).max(initial=0))
    return worst


def _groups(rows: Rows) -> list[Any]:
    """Groups of rows to score separately: shuffled, short lists, long lists, single rows."""
    count = len(rows)
    order = np.random.default_rng(count).permutation(count)
    values = sum(np.maximum(of.counts, 0) for of in rows.cells.values())
    thirds = min(count, 3)
    pieces, alone = np.array_split(order, thirds), [*order[:1]]
    if np.ptp(values):
        by_length = np.argsort(values, kind="stable")
        pieces += np.array_split(by_length, thirds)
        alone = [*by_length[:_ALONE], *by_length[-1:], *alone]
    return [*pieces, *(np.array([row]) for row in dict.fromkeys(alone))]


def _scale(values: Any, scale: Scale) -> float:
    """The scale of an output, for relative differences."""
    if values.dtype.kind not in "fc":
        return 1.0
    finite = np.abs(values[np.isfinite(values)])
    return max(1.0, float(scale(finite))) if finite.size else 1.0
