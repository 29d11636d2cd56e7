"""Generated rows made as small as those of a request: bold values take more bytes than ids do."""

from collections.abc import Sequence

from colcast.export.convert._features import Scalar
from colcast.export.trials._rows import Rows, Values, moderate

_IDS = 100_000  # integers are below
_LONGEST = 12  # bytes of a string


def everyday(rows: Rows) -> Rows:
    """The rows with ids, short strings and floats between -1 and 1, and without missing values."""
    return Rows(rows.features, {name: _small_values(of) for name, of in rows.values.items()})


def _small_values(rows: Sequence[Values]) -> list[Values]:
    present = next((row for row in rows if row is not None), None)
    return [
        None if row is None else [_small(value) for value in row]
        for row in (present if row is None else row for row in rows)
    ]


def _small(value: Scalar) -> Scalar:
    if isinstance(value, bytes):
        return value[:_LONGEST] or b"v1"
    if isinstance(value, float):
        return moderate(value)
    if isinstance(value, bool):
        return value
    return (value if value >= 0 else ~value) % _IDS
