"""Differences beside NaN or infinity come with advice: generated rows may be out of range."""

import numpy as np
import pytest
from colcast.export import ExportError
from colcast.export._parity import _check
from colcast.export.graph._comparison import Trial, compare_trials


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_proof_that_fails_on_values_that_are_not_finite_says_so(value: float) -> None:
    expected = {"scores": np.array([1.0, value], np.float32)}
    given = {"scores": np.array([1.0, 2.0], np.float32)}
    trial = Trial(2, expected, given, {"scores": np.zeros(2)})
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        compare_trials([trial], 1e-5)
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        _check(np.inf, "scores", expected["scores"], given["scores"])


def test_a_proof_that_fails_on_finite_values_does_not() -> None:
    scores = np.array([1.0, 2.0], np.float32)
    trial = Trial(2, {"scores": scores}, {"scores": 2 * scores}, {"scores": np.zeros(2)})
    with pytest.raises(ExportError) as failed:
        compare_trials([trial], 1e-5)
    assert "--examples" not in str(failed.value)
