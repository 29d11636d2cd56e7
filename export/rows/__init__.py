"""The independence rule: which rows a tensor depends on, by a small abstract interpretation.

Requests are joined, split or answered from a cache only where this rule allows it and runs do not
contradict it. An op whose `@rule` is in none of these modules mixes rows, and is refused by name:

    _entries   each entry from the entries at its position, or over dimensions without rows
    _shapes    shapes, other shapes of the same entries, parts put together or taken out
    _lists     entries looked up or chosen, sparse and ragged tensors, segments of rows

`_facts` has the lattice and the one invariant, `checked` after every op. No number that fills a
list's end is ever assumed to be harmless: what is reduced, contracted or moved over the width of a
list names that list in `Fact.pads`, and in `own_length` in the record.

Use: `Walk(graph, session, given).facts` has a fact for every tensor of a FlatGraph, computed from
`given`, the facts about its inputs; `verdict(fact)` says whether it has one row per candidate, each
from its own row: `(True, own_length)` or `(False, why)`. `_independence` decides for signatures.
"""

from colcast.export.rows._facts import Fact as Fact
from colcast.export.rows._facts import verdict as verdict
from colcast.export.rows._walk import Walk as Walk
