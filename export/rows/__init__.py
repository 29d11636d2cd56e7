"""The independence rule: how each op treats rows.

Rows run with other rows beside them, without some of their own, or come from a cache only where
the rule says so and running shows it. `_facts` has the words, `_op` the table of rules; `_elements`
(with `_fills`, `_numbers` and `_sizes`), `_shapes`, `_slices`, `_stacks`, `_repeats`, `_sums`,
`_matrices`, `_searches`, `_lookups`, `_lists` and `_control` are the rules; `_walk` goes
through a graph, `_nodes` through its nodes and functions (`_free`: what no row reaches),
`_independence` is the verdict, `_signatures` that of signatures.
"""

from colcast.export.rows._facts import Fact, Kind, sizes
from colcast.export.rows._independence import (
    Independence,
    facts_of,
    find_independence,
    once,
    rows_of,
)
from colcast.export.rows._nodes import WALKED
from colcast.export.rows._op import RULES
from colcast.export.rows._signatures import CANDIDATE, candidates

__all__ = [
    "CANDIDATE", "RULES", "WALKED", "Fact", "Independence", "Kind", "candidates",
    "facts_of", "find_independence", "once", "rows_of", "sizes",
]  # fmt: skip
