"""Stages: what is of one domain computed once for each of its rows, then the candidates scored.

`add_parts` cuts a late signature into stages that any TensorFlow Serving can run, for domains such
as user, item, and shop:

```
columnar_user   user columns [U, ...]  -> user_state/0, user_state/1, ... [U, ...]
columnar_item   item columns [I, ...]  -> item_state/0, ... [I, ...]
columnar_shop   shop columns [R, ...]  -> shop_state/0, ... [R, ...]
columnar_pair   user_state/k [U, ...], item_state/k [N, ...], shop_state/k [R, ...],
                row_to_user and row_to_shop int64 [N], user_state/row int64 [U],
                shop_state/row int64 [R], context columns [N, ...]  -> the late signature's outputs
```

The way there, file by file: `_add_parts` (which domains have a stage), `_cut` (one way to cut),
`_stage` (a domain's ops written as a graph of their own, run to find its states), `_boundary` (the
states that are needed), `_gain` (whether they are worth it), `_context_products` (products over
columns of several domains become one for each), `_pair` (the ops behind them), `_parts_proof`,
`_reuse` (what recorded requests would have found again), `_parts_report`.
"""

from colcast.export.parts._add_parts import add_parts
from colcast.export.parts._gain import row_bytes
from colcast.export.parts._parts_report import PartsReport, State
from colcast.export.parts._reuse import Reuse, count_reuse

__all__ = ["PartsReport", "Reuse", "State", "add_parts", "count_reuse", "row_bytes"]
