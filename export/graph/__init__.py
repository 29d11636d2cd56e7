"""The kit that late expansion and the stages are made with: colour, observe, write, compare.

`_signature` reads a signature, `_flat_graph` is its graph, `_ops` what is known of ops by their
type, `_colours` which ops read which domains' columns. `_requests` draws trial rows, `_findings`
and `_row_findings` run a graph to see what its tensors do, `_distrust` corrects what runs cannot
show. `_emitter` collects new nodes, `_copy` copies a signature's, `_add_nodes` puts them into a
graph, `_comparison` says how far two signatures are apart.
"""
