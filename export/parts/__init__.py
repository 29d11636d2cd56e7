"""Three parts: a user computed once, an item computed once, the pair scored.

`add_parts` cuts a late signature into three that any TensorFlow Serving can run:

```
columnar_user   user columns [U, ...]  -> user_state/0, user_state/1, ... [U, ...]
columnar_item   item columns [I, ...]  -> item_state/0, ... [I, ...]
columnar_pair   user_state/k [U, ...], item_state/k [N, ...], row_to_user int64 [N],
                context columns [N, ...]  -> the late signature's outputs
```

The way there, file by file: `_part_of_op` (which ops read the user alone, or items alone), `_part`
(such ops written as a graph of their own), `_independence` (which of its tensors are a state: a row
per user or item that no other row has a say in, found by running), `_boundary` (the states that are
needed), `_context_products` (products over items and context become two), `_pair` (the ops behind
them), `_parts_proof`, `_reuse` (what recorded requests would have found again), `_parts_report`.
"""

from colcast.export.parts._add_parts import add_parts
from colcast.export.parts._parts_report import PartsReport, State
from colcast.export.parts._reuse import Reuse, count_reuse

__all__ = ["PartsReport", "Reuse", "State", "add_parts", "count_reuse"]
