"""NaN in a column: the whole model answers, and the failed stages are counted."""

from collections.abc import Callable
from pathlib import Path

from ..server.metrics_page import Metrics
from .cases import cases_of
from .exported import Exported
from .hammer import hammer
from .servers import serve


def test_rows_with_nan_are_scored_by_the_whole_model_and_counted(
    exported: Callable[[str], Exported], tmp_path: Path
) -> None:
    model = exported("nan_in_item_price")
    with serve([model], "default", tmp_path) as server:
        found = hammer(server, model.model.name, cases_of(model, (1, 2, 20)), 400)
        counted = {
            (sample.labels["program"], sample.labels["outcome"])
            for sample in Metrics(server).samples
            if sample.name == ":colcast:program_total" and sample.value
        }
    assert not any(tally.wrong or tally.inexact or tally.refused for tally in found.values()), found
    assert {("stages", "failed"), ("stages", "ok"), ("whole", "ok")} <= counted
