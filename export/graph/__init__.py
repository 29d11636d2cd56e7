"""The toolkit for late expansion and the stages: colour, observe, write, compare.

`_signature` reads a signature; `_flat_graph` is its graph; `_ops` classifies ops by type;
`_colours` finds which ops read which domains' columns. `_requests` draws trial rows; `_findings`
and `_row_findings` run a graph to see how its tensors behave; `_distrust` corrects for what runs
cannot show. `_emitter` collects new nodes, `_copy` copies a signature's nodes, `_add_nodes` adds
them to a graph, and `_comparison` measures how far two signatures differ.
"""
