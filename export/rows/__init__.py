"""The independence rule: how each op treats rows.

Rows run with other rows beside them, without some of their own, or come from a cache only where
this says so and running shows it. `_facts` has the words, `_op` the table of rules; `_elements`
(with `_fills`, `_numbers` and `_sizes`), `_shapes`, `_slices`, `_stacks`, `_repeats`, `_sums`,
`_diagonals`, `_searches`, `_lookups`, `_lists` and `_control` are the rules; `_walk` is the way
through a graph (`_free` what no row reaches, `_bodies` functions), `_independence` the verdict,
`_signatures` that of signatures.
"""

from colcast.export.rows._facts import Fact, Kind, sizes
from colcast.export.rows._independence import (
    Independence,
    facts_of,
    find_independence,
    once,
    rows_of,
)
from colcast.export.rows._op import RULES
from colcast.export.rows._signatures import CANDIDATE, candidates
from colcast.export.rows._walk import WALKED

__all__ = [
    "CANDIDATE", "RULES", "WALKED", "Fact", "Independence", "Kind", "candidates",
    "facts_of", "find_independence", "once", "rows_of", "sizes",
]  # fmt: skip
