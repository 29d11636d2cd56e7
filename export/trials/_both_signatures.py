"""Runs a signature and its columnar form on rows that the model may refuse."""

import functools
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._signature import Conversion, is_by_list
from colcast.export.graph._comparison import all_finite
from colcast.export.graph._errors import ExportError, TooLongError
from colcast.export.graph._sessions import Run, describe_loops
from colcast.export.trials._rows import Rows

_FIRST_RUN_SECONDS = 60  # includes TensorFlow's preparation of the graph
_RUN_SECONDS = 2  # for later runs; a model may loop as many times as a generated number says
_READILY_SECONDS = 0.2  # limit while rows are chosen, which takes many runs
_READILY_TIMES = 8  # or this multiple of the time for modest rows, if longer
_ALONE = 3  # rows that must also finish alone; the first ones are extreme

Outputs = Mapping[str, Any]


class BothSignatures:
    """Runs a signature and its columnar form.

    Attributes:
      refusal: why the source last refused rows.
      by_columns: whether to try rows with the columnar signature instead of the source, which is
          faster but allowed only once the scores are proved equal.
    """

    refusal = ""
    by_columns = False

    def __init__(
        self, of_source: Any, session: Any, meta_graph: Any, conversion: Conversion
    ) -> None:
        """Prepares runs.

        Args:
          of_source: an initialised session with the source; it may be `session`.
          session: an initialised session with the columnar signature.
          meta_graph: the MetaGraphDef with both signatures.
          conversion: the converted signature.
        """
        self._session = session
        self._source = meta_graph.signature_def[conversion.source]
        self._conversion = conversion
        self._source_input = conversion.source_input
        self._columnar = meta_graph.signature_def[conversion.name]
        self._runs = {
            id(signature): Run(
                of_signature,
                [info.name for info in signature.inputs.values()],
                [info.name for info in signature.outputs.values()],
            )
            for of_signature, signature in (
                (of_source, self._source),
                (session, self._columnar),
            )
        }
        self._patience_seconds = float(_FIRST_RUN_SECONDS)
        self._readily_seconds = 0.0  # set by the first run

    def source(self, rows: Rows) -> Outputs:
        """The source's outputs for rows, sent as tf.Examples or as the tensors that it takes."""
        outputs = self._run(self._source, self._source_feeds(rows))
        if self._conversion.context is None:
            return outputs
        by_list = {n: is_by_list(info) for n, info in self._source.outputs.items()}
        return {n: value[0] if by_list[n] else value for n, value in outputs.items()}

    def columnar(self, rows: Rows) -> Outputs:
        """The columnar signature's outputs for rows as columns."""
        return self._run(self._columnar, _feeds(self._columnar, self.of_a_request(rows)))

    def accepts(self, rows: Rows, *, readily: bool = False, finitely: bool = False) -> bool:
        """Whether the source scores the rows and does not take much longer than usual.

        Args:
          rows: the rows.
          readily: allow little more time than the first, modest rows took. The first rows must also
              finish alone, because the smallest number in a request may be the number of iterations
              of a loop.
          finitely: allow no score that is NaN or infinite.
        """
        patience = self._patience_seconds
        outputs = self._scored_readily(rows) if readily else self._scored(rows, patience)
        if outputs is None or not finitely or all_finite(*outputs.values()):
            return outputs is not None
        self.refusal = "scores are NaN or infinite"
        return False

    def _scored_readily(self, rows: Rows) -> Outputs | None:
        if not self._readily_seconds:
            if not self.accepts(rows):
                return None
            started = time.monotonic()
            self.accepts(rows)
            times = _READILY_TIMES * (time.monotonic() - started)
            self._readily_seconds = min(max(times, _READILY_SECONDS), _RUN_SECONDS)
        outputs = self._scored(rows, self._readily_seconds)
        if outputs is None:
            return None
        # Checked only for all rows together: a row with an empty list may have no output.
        if all(np.shape(output)[:1] == (0,) for output in outputs.values()):
            self.refusal = "every output is empty"
            return None
        alone = (rows[row : row + 1] for row in range(min(_ALONE, len(rows))))
        return outputs if all(map(self._ends, alone)) else None

    def _ends(self, rows: Rows) -> bool:
        try:
            self._run(*self._asked(rows), self._readily_seconds)
        except TooLongError as error:
            self.refusal = str(error)
            return False
        except tf.errors.OpError:
            pass  # a model may accept rows only together
        return True

    def _scored(self, rows: Rows, seconds: float) -> Outputs | None:
        """The scores; None, with the reason in `refusal`, if the model fails or is too slow."""
        self._patience_seconds = _RUN_SECONDS
        try:
            return self._run(*self._asked(rows), seconds)
        except TooLongError as error:
            self.refusal = str(error)
        except tf.errors.OpError as error:
            self.refusal = _reason(error)
        return None

    def _asked(self, rows: Rows) -> tuple[Any, list[Any]]:
        if self.by_columns:
            return self._columnar, _feeds(self._columnar, rows)
        return self._source, self._source_feeds(rows)

    @functools.cached_property
    def _loops(self) -> str:
        inputs = {name: info.name for name, info in self._columnar.inputs.items()}
        outputs = [info.name for info in self._columnar.outputs.values()]
        return describe_loops(self._session.graph, inputs, outputs)

    def check_rows_of_outputs(self, batches: Iterable[Rows]) -> None:
        """Raises ExportError if no output of the source has a row per candidate.

        That happens if an input has no row per candidate, such as the values of a ragged tensor;
        signatures do not declare such inputs.
        """
        shapes = [(len(rows), self.source(rows)) for rows in batches]
        if shapes and not any(
            all(np.shape(outputs[name])[:1] == (rows,) for rows, outputs in shapes)
            for name in shapes[0][1]
        ):
            rows, outputs = shapes[-1]
            found = ", ".join(f"{name!r} {list(np.shape(o))}" for name, o in outputs.items())
            raise ExportError(
                f"no output has one row per candidate: for {rows} rows, shapes are {found}; do all"
                " inputs have one? The tensors of a ragged or sparse input do not"
            )

    def _source_feeds(self, rows: Rows) -> list[Any]:
        if self._source_input is None:
            return _feeds(self._source, rows)
        return [self.of_a_request(rows).serialized(self._conversion.context)]

    def of_a_request(self, rows: Rows) -> Rows:
        """The rows with the first row's context on every row, as in a single list."""
        context = self._conversion.context
        return rows if context is None else rows.of_one(context)

    def _run(
        self, signature: Any, feeds: list[Any], timeout_seconds: float = _FIRST_RUN_SECONDS
    ) -> Outputs:
        try:
            outputs = self._runs[id(signature)](feeds, timeout_seconds)
        except tf.errors.DeadlineExceededError as error:
            done = f"not finished within {timeout_seconds:.2g} s"
            raise TooLongError(f"{done}; {self._loops}".rstrip("; ")) from error
        return dict(zip(signature.outputs, outputs, strict=True))


def _feeds(signature: Any, rows: Rows) -> list[Any]:
    columns = rows.columns()
    return [columns[name] for name in signature.inputs]


def _reason(error: Any) -> str:
    """An op's error message without TensorFlow's preamble and location; never empty."""
    said = error.message.partition("\n\t [[")[0].splitlines()
    lines = [line.strip() for line in (*error.message.splitlines(), *said)]
    return next((line for line in reversed(lines) if line), type(error).__name__)
