"""The independence rule: which rows a tensor depends on, by a small abstract interpretation.

Requests are joined, split or answered from a cache only where this rule allows it and runs do not
contradict it. Every op belongs to a class, or it mixes rows and is refused by name:

    _elements  each entry from the entries at its position; positions and sizes beside each other
    _shapes    shapes, and other shapes of the same entries
    _reduce    reductions and products over dimensions without rows
    _parts     parts put together, taken out or repeated along dimensions without rows
    _lookups   entries looked up by number or by value
    _lists     sparse and ragged tensors, segments of rows

`_facts` has the lattice and the one invariant, which `Walk` checks after every op: a result that
depends on rows has exactly one factor that counts rows, the slowest of its dimension. No number
that fills a list's end is ever assumed to be harmless: what is reduced, contracted or moved over
the width of a list names that list in `Fact.pads`, and `own_length` in the record.

One thing is assumed of requests: two list features that a model combines entry by entry, such as
ids and their weights, are equally long in every row (as `embedding_lookup_sparse` demands).

Use: `Walk(graph, session, given).facts` has a fact for every tensor of a FlatGraph, computed from
`given`, the facts about its inputs; `verdict(fact)` says whether it has one row per candidate, each
from its own row: `(True, own_length)` or `(False, why)`. `_independence` decides for signatures.
"""

from colcast.export.rows._facts import Fact as Fact
from colcast.export.rows._facts import verdict as verdict
from colcast.export.rows._walk import Walk as Walk
