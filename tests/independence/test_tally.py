"""The hammer notices what is wrong."""

from typing import Any

import numpy as np
import pytest

from .cases import Case
from .hammer import Tally


def _tally(given: Any, expected: Any, kind: str = "late") -> Tally:
    tally = Tally()
    answer = {"score": np.asarray(expected, np.float32)}
    tally.add(Case(kind, b"", "columnar_late", answer), {"score": np.asarray(given, np.float32)})
    return tally


@pytest.mark.parametrize("given", [[1.0, 2.1], [2.0, 1.0], [1.0, np.nan], [1.0], [[1.0, 2.0]], 1.0])
def test_another_score_or_shape_is_wrong(given: Any) -> None:
    assert _tally(given, [1.0, 2.0]).wrong == 1


def test_rounding_is_right_and_seen_where_bits_are_promised() -> None:
    close = [1.0, 2.000001]
    assert (_tally(close, [1.0, 2.0]).wrong, _tally(close, [1.0, 2.0]).inexact) == (0, 0)
    assert _tally(close, [1.0, 2.0], kind="columnar").inexact == 1
    assert _tally([1.0, 2.0], [1.0, 2.0], kind="columnar").inexact == 0
