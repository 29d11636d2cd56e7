"""Writes a columnar signature again with its user part at one row."""

from collections.abc import Callable
from functools import partial

from colcast.export.cut import _rules
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._observed import Observed
from colcast.export.cut._products import Products
from colcast.export.cut._split import Splits
from colcast.export.graph._colours import PAIR, USER, Colours
from colcast.export.graph._flat_graph import NodeDef

MOST_GATHERED_BYTES = 256 << 20

Rule = Callable[[NodeDef], bool]  # writes an item-side node and returns True, or leaves it alone

_RULES = (_rules.broadcast, _rules.concat, _rules.pack, _rules.add_n)
_EXACT_RULES = (_rules.broadcast_exactly, _rules.concat, _rules.pack)


def write_late(
    observed: Observed,
    prefix: str,
    *,
    domains: Colours | None = None,
    most_gathered_bytes: int = MOST_GATHERED_BYTES,
) -> tuple[LateGraph, Products]:
    """Writes the nodes.

    Args:
        observed: the columnar signature.
        prefix: the first part of every new node's name.
        domains: colours of its nodes, if stages will be cut from the graph: products are then split
            by domain, and there may be any number of users. Otherwise they are split into the user
            and the rest, and there is one user.
        most_gathered_bytes: how many bytes of weights may be gathered where the rows of a kernel
            interleave.
    """
    late = LateGraph(observed, prefix, domains)
    late.place_inputs(observed.signature)
    products = Products(
        late, Splits(late), observed.fused, most_gathered_bytes, observed.kernel_rows
    )
    rules: list[Rule] = [] if observed.exact else [products.write]
    rules += [partial(rule, late) for rule in (_EXACT_RULES if observed.exact else _RULES)]
    for name, node in observed.graph.nodes.items():
        if late.is_input(name):
            continue
        if observed.colours.of[name] == USER:
            late.write_user(node)
        elif observed.colours.of[name] == PAIR and not any(rule(node) for rule in rules):
            late.write_item(node)
    return late, products
