"""Hit rates of the state caches on `wide`."""

import pytest
from colcast.loadtest.bench_zipf import _hits


def test_rows_that_nobody_looked_for_were_not_found():
    names = ("states_found_total", "states_computed_total", "states_not_looked_for_total")
    before = {("user", name): 10.0 for name in names}
    after = dict(zip(before, (13.0, 12.0, 11.0), strict=True))
    assert _hits("user", before, after) == pytest.approx(0.5)
    assert str(_hits("user", before, before)) == "nan"
