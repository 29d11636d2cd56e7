"""Cuts a columnar signature where domains meet: a domain's ops run once per row of that domain.

`observe` finds which tensors of a columnar signature may be repeated, by the independence rule and
by runs that may contradict it (`_findings`).

`add_late_signature` adds a signature whose user inputs have one row and whose graph repeats tensors
only where user and items meet. Its steps are `_write_late` (`_late_graph` with `_split` and
`_products`), `_late_proof` and `_late_report`.

`add_stages` writes a late graph for any number of users, with products split by domain, and cuts
it into stages that any TensorFlow Serving can run. For the domains user, item and shop:

```
columnar_user   user columns [U, ...]  -> user_state/0, user_state/1, ... [U, ...]
columnar_item   item columns [I, ...]  -> item_state/0, ... [I, ...]
columnar_shop   shop columns [R, ...]  -> shop_state/0, ... [R, ...]
columnar_pair   user_state/k [U, ...], item_state/k [N, ...], shop_state/k [R, ...],
                row_to_user and row_to_shop int64 [N], user_state/row int64 [U],
                shop_state/row int64 [R], context columns [N, ...]  -> the late signature's outputs
```

Its steps are `_add_stages` (decides which domains have a stage), `_cut` (one attempt to cut),
`_stage` (writes a domain's ops as a separate graph, finds its states by the independence rule, and
decides which are needed and whether they save time), `_pair` (writes the last stage),
`_stages_proof` and `_stages_report`, which also counts how often recorded requests would have hit
the state cache.
Subclasses of `Copy` (`graph/`) write the late signature, the stages and the last stage.
"""
