"""Reads frames, and iterables of frames, as batches of columns."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from colcast.client import InputError
from colcast.items._convert import Columns

BATCH_ROWS = 1 << 14


def batches_of_frames(source: Any) -> Iterator[Columns]:
    """The rows of a pandas, Polars or Arrow frame, or of an iterable of frames, in order.

    Raises:
        InputError: the source is none of these, or has two columns with one name.
    """
    library = type(source).__module__.partition(".")[0]
    if hasattr(source, "to_arrow"):  # Polars
        yield from batches_of_frames(source.to_arrow())
    elif isinstance(source, pa.RecordBatch | pa.Table):
        _check_names(source.column_names)
        table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            if batch.num_rows:
                yield dict(zip(batch.schema.names, batch.columns, strict=True))
    elif library == "pandas" and hasattr(source, "iloc"):
        _check_names(source.columns)
        for start in range(0, len(source), BATCH_ROWS):
            rows = source.iloc[start : start + BATCH_ROWS]
            yield {name: _series(rows[name]) for name in rows.columns}
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        for frame in source:
            yield from batches_of_frames(frame)
    else:
        raise InputError(
            "expected a pandas or Polars DataFrame, a pyarrow Table or RecordBatchReader, or an"
            f" iterable of them, got {type(source).__name__}"
        )


def _series(series: Any) -> Any:
    """A pandas column in Arrow's form: NaN, which pandas uses for missing values, becomes null."""
    if str(series.dtype) in ("str", "string") or getattr(series.dtype, "kind", "") == "f":
        return pa.array(series, from_pandas=True)
    return series


def _check_names(names: Iterable[Any]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InputError("the frame has two columns of this name", feature=str(name))
        seen.add(name)
