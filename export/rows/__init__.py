"""The independence rule: how each op treats rows.

Requests are joined, split or answered from a cache only where the rule allows it and runs confirm
it. `_facts` defines facts about tensors, `_op` the table of rules. The rules are in `_elements`
(with `_numbers` for values and padding), `_shapes`, `_slices`, `_stacks`, `_sums`, `_matrices`,
`_lookups`, `_lists` and `_control`. `_walk` applies them to a graph, `_nodes` to one node and the
functions it calls. `_maps` recognizes loops over rows, `_free` tensors that no row affects;
`_trials` runs a node on a few entries. `_independence` decides for a signature.
"""
