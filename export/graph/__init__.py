"""Tools for late expansion and the stages: colour, observe, write, compare.

`_nodes` has the nodes of a graph, `_op_defs` the definitions of its ops; `_signature` reads a
signature; `_ops` classifies ops by type; `_colours` finds which domains' columns each op reads.
`_probe` runs tensors of a graph (`_sessions`). `_emitter` collects new nodes, copies a signature's
nodes and adds nodes to a graph. `_comparison` measures how far answers differ. `_impure` finds
signatures whose answers depend on more than the request and the model's files.
"""
