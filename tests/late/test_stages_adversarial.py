"""Models in which rows are not independent, as three stages: equal to `columnar_late` or refused.

The roles of user and items are tried both ways, so that counts, positions and sums over rows are
the items' as well.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from colcast.export.cut import add_stages
from colcast.export.graph._errors import ExportError

from .conftest import Columns
from .test_adversarial import COLUMNS, EXACT

_MANY = 200  # rows, more than any trial has


@pytest.mark.parametrize("user", [["u", "id"], ["x"]], ids=["of_user", "of_items"])
@pytest.mark.parametrize("build", EXACT)
def test_stages_score_as_the_late_signature_or_are_not_written(
    model: Any, build: Callable[[Columns], Columns], user: list[str]
) -> None:
    try:
        built = model(build, COLUMNS, user)
    except ExportError:
        pytest.skip("there is no late signature to compare with")
    report = add_stages(built.meta_graph, built.observed, rows=built.rows)
    if not report.written:
        assert report.reason
        return
    columns = built.rows(_MANY)
    for rows in (1, 2, 5, _MANY):
        items = {name: column[:rows] for name, column in columns.items()}
        once = {name: c[:1] if name in user else c for name, c in items.items()}
        states = _run(built, "item", items, rows)
        own = built.run("columnar_user", once)
        first = dict.fromkeys(("row_to_user", "user_state/row"), np.zeros(1, np.int64))
        given = built.run("columnar_pair", {**own, **states, **first})
        for name, value in built.run("columnar_late", once).items():
            if value.dtype.kind == "f":
                np.testing.assert_allclose(given[name], value, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(given[name], value)


def _run(built: Any, stage: str, columns: Columns, rows: int) -> Columns:
    """A stage's states, computed in two batches."""
    half = (rows + 1) // 2
    batches = [
        built.run(f"columnar_{stage}", {name: c[rows_] for name, c in columns.items()})
        for rows_ in (slice(0, half), slice(half, rows))
        if rows_.start < rows_.stop
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
