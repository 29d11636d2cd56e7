"""The proof that a columnar signature gives what its source gives."""

import dataclasses
import functools
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export._errors import ExportError, TooLongError
from colcast.export._generate import RowSource, accepted_together
from colcast.export._loops import loops_told
from colcast.export._not_finite import told
from colcast.export._rows import Rows
from colcast.export._sessions import session_config
from colcast.export._signature import Conversion, CutGraph, is_by_list

_BATCHES = (1, 2, 7, 50, 140)  # rows of each comparison
_REPEATS = range(3)  # where outputs differ: a model may draw a random number now and then
_FIRST_RUN_SECONDS = 60  # TensorFlow prepares the graph in it
_RUN_SECONDS = 2  # a model may take a generated number for a number of steps
_READILY_SECONDS = 0.2  # what such a number may cost when rows are chosen: there are many runs
_READILY_TIMES = 8  # and as a multiple of the time that modest rows take
_ALONE = 3  # rows that have to end alone; the first ones are extreme
_LARGEST_DIFFERENCE = 1e-6  # relative; another order of the same sums may give as much

Outputs = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Parity:
    """What was compared.

    Attributes:
      rows: how many rows both signatures scored.
      recorded_rows: how many of them were recorded ones.
      differences: largest absolute difference by output; 0.0 where all bits are equal.
      unstable: outputs that differ between two runs of one signature, and prove nothing.
      note: why scores were not compared, if they were not. What the parse op gives always is.
      refused_rows: how many recorded rows the model refused.
      refusal: what it said of the first of them.
    """

    rows: int = 0
    differences: Mapping[str, float] = dataclasses.field(default_factory=dict)
    unstable: tuple[str, ...] = ()
    note: str | None = None
    recorded_rows: int = 0
    refused_rows: int = 0
    refusal: str = ""

    @property
    def identical(self) -> bool:
        """Whether every score was the same to the bit."""
        return self.rows > 0 and not self.unstable and not any(self.differences.values())


class Probe:
    """Runs a signature and the columnar one made from it in one session.

    Attributes:
      refusal: why the source refused rows last.
    """

    refusal = ""

    def __init__(self, session: Any, meta_graph: Any, conversion: Conversion) -> None:
        """Takes a session in which the MetaGraphDef with both signatures is initialised."""
        self._session = session
        self._source = meta_graph.signature_def[conversion.source]
        self._conversion = conversion
        self._source_input = conversion.source_input
        self._columnar = meta_graph.signature_def[conversion.name]
        self._patience_seconds = float(_FIRST_RUN_SECONDS)
        self._readily_seconds = 0.0  # not known yet

    def source(self, rows: Rows) -> Outputs:
        """The source's outputs for rows as tf.Examples or, if it takes those, as tensors."""
        outputs = self._run(self._source, self._source_feeds(rows))
        if self._conversion.context is None:
            return outputs
        by_list = {n: is_by_list(info) for n, info in self._source.outputs.items()}
        return {n: value[0] if by_list[n] else value for n, value in outputs.items()}

    def columnar(self, rows: Rows) -> Outputs:
        """The columnar signature's outputs for rows as columns."""
        return self._run(self._columnar, _feeds(self._columnar, self.of_a_request(rows)))

    def accepts(self, rows: Rows) -> bool:
        """Whether the source scores the rows, and in about the time that it took for others."""
        return self._accepts(rows, self._patience_seconds)

    def accepts_readily(self, rows: Rows) -> bool:
        """Whether the source scores the rows, in not much more time than the first, modest ones.

        The first rows have to be done alone, too: a loop may run as often as the least number says.
        """
        if not self._readily_seconds:
            if not self.accepts(rows):
                return False
            started = time.monotonic()
            self.accepts(rows)
            times = _READILY_TIMES * (time.monotonic() - started)
            self._readily_seconds = min(max(times, _READILY_SECONDS), _RUN_SECONDS)
        alone = (rows[row : row + 1] for row in range(_ALONE))
        return self._accepts(rows, self._readily_seconds) and all(map(self._ends, alone))

    def _ends(self, rows: Rows) -> bool:
        try:
            self._run(self._source, self._source_feeds(rows), self._readily_seconds)
        except TooLongError as error:
            self.refusal = str(error)
            return False
        except tf.errors.OpError:
            pass  # a model may take rows together only
        return True

    def _accepts(self, rows: Rows, seconds: float) -> bool:
        self._patience_seconds = _RUN_SECONDS
        try:
            self._run(self._source, self._source_feeds(rows), seconds)
        except TooLongError as error:
            self.refusal = str(error)
            return False
        except tf.errors.OpError as error:
            self.refusal = _reason(error)
            return False
        return True

    @functools.cached_property
    def _loops(self) -> str:
        inputs = {name: info.name for name, info in self._columnar.inputs.items()}
        outputs = [info.name for info in self._columnar.outputs.values()]
        return loops_told(self._session.graph, inputs, outputs)

    def check_rows_of_outputs(self, batches: Iterable[Rows]) -> None:
        """Raises ExportError if no output of the source has a row per candidate.

        It shows what a signature does not tell: that an input has no row per candidate, such as
        the values of a ragged one.
        """
        shapes = [(len(rows), self.source(rows)) for rows in batches]
        if shapes and not any(
            all(np.shape(outputs[name])[:1] == (rows,) for rows, outputs in shapes)
            for name in shapes[0][1]
        ):
            rows, outputs = shapes[-1]
            found = ", ".join(f"{name!r} {list(np.shape(o))}" for name, o in outputs.items())
            raise ExportError(
                f"no output has a row per candidate: for {rows} rows there is {found}; do all"
                " inputs have one? A ragged or sparse input comes as tensors that do not"
            )

    def _source_feeds(self, rows: Rows) -> dict[str, Any]:
        if self._source_input is None:
            return _feeds(self._source, rows)
        serialized = self._conversion.serialized(self.of_a_request(rows))
        return {self._source.inputs[self._source_input].name: serialized}

    def of_a_request(self, rows: Rows) -> Rows:
        """Rows of a list have one context."""
        context = self._conversion.context
        return rows if context is None else rows.of_one(context)

    def _run(
        self,
        signature: Any,
        feeds: Mapping[str, Any],
        timeout_seconds: float = _FIRST_RUN_SECONDS,
    ) -> Outputs:
        fetches = {name: info.name for name, info in signature.outputs.items()}
        options = tf.compat.v1.RunOptions(timeout_in_ms=int(1000 * timeout_seconds))
        try:
            outputs: Outputs = self._session.run(fetches, feeds, options=options)
        except tf.errors.DeadlineExceededError as error:
            done = f"not done within {timeout_seconds:.2g} s"
            raise TooLongError(f"{done}; {self._loops}".rstrip("; ")) from error
        return outputs


def _feeds(signature: Any, rows: Rows) -> dict[str, Any]:
    columns = rows.columns()
    return {info.name: columns[name] for name, info in signature.inputs.items()}


def prove_parse(cut: CutGraph, source: RowSource, context: Collection[str] | None = None) -> None:
    """Compares what the parse ops give with what replaces them, bit for bit.

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
                rows.examples()
                if context is None
                else [rows[i : i + 1].list_with_context(context) for i in range(count)]
            )
            for (feature, *_), (before, after) in zip(
                cut.pairs, session.run(tensors, feeds), strict=True
            ):
                if difference(before, after) != 0.0:
                    raise ExportError(
                        f"feature {feature!r} differs from what the parse op gives for the same"
                        f" {count} rows: {_shown(after)}, expected {_shown(before)}"
                    )


def prove_scores(probe: Probe, batches: Iterable[Rows]) -> Parity:
    """Compares all outputs of the two signatures, batch by batch.

    Args:
      probe: runs both.
      batches: rows that the source accepts.

    Raises:
      ExportError: an output differs by more than another order of sums explains.
    """
    compared = 0
    differences: dict[str, float] = {}
    unstable: set[str] = set()
    for rows in batches:
        expected, given = probe.source(rows), probe.columnar(rows)
        again: list[tuple[Outputs, Outputs]] = []
        for output, value in expected.items():
            found = difference(value, given[output])
            if found != 0.0:
                again = again or [(probe.source(rows), probe.columnar(rows)) for _ in _REPEATS]
                if any(
                    difference(value, source[output]) or difference(given[output], columnar[output])
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


def generated_batches(probe: Probe, source: RowSource) -> Iterator[Rows]:
    """Batches of generated rows, without those that the source of the conversion refuses."""
    for count in _BATCHES:
        rows = accepted_together(source.draw(count), probe.accepts)
        if len(rows):
            yield rows


def difference(expected: Any, given: Any) -> float:
    """Largest absolute difference; 0.0 where all is equal (NaN to NaN), inf where shapes differ."""
    expected, given = map(_comparable, (expected, given))
    if expected.shape != given.shape or expected.dtype != given.dtype:
        return float("inf")
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(expected, given) else float("inf")
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(expected - given))
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))


def _comparable(value: Any) -> Any:
    """The value as an array; bfloat16, which NumPy takes for no float, as float32."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == tf.bfloat16.as_numpy_dtype else array


def _reason(error: Any) -> str:
    """What an op said, without how TensorFlow leads up to it and where it was."""
    said: str = error.message.partition("\n\t [[")[0]
    return said.splitlines()[-1]


def _check(found: float, output: str, expected: Any, given: Any) -> None:
    """Raises ExportError if an output differs by more than another order of sums explains."""
    if found > _allowed(expected):
        raise ExportError(
            f"output {output!r} differs from the source's for the same {len(expected)} rows by"
            f" {found:.3g}: {_shown(given)}, expected {_shown(expected)}{told(expected, given)}"
        )


def _allowed(expected: Any) -> float:
    """The difference that another order of sums explains."""
    expected = _comparable(expected)
    if expected.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    return _LARGEST_DIFFERENCE * float(finite.max(initial=0.0))


def _shown(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype} {list(array.shape)} {np.array2string(array, threshold=8)}"
