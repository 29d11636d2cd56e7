"""Writes the late form of a columnar signature: the user part at one row, other ops at N rows.

A rule takes an item-side node; it writes the node and returns True, or returns False. Rules rely on
the findings of trial runs: a tensor's rank, and whether it has one row or N.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._observed import Observed
from colcast.export.cut._products import Products
from colcast.export.cut._split import Splits
from colcast.export.graph._colours import PAIR, USER, Colours
from colcast.export.graph._nodes import NodeDef, attribute, data_inputs
from colcast.export.graph._ops import BROADCASTING, EXACT


def _broadcast(late: LateGraph, node: NodeDef) -> bool:
    """Passes one-row user tensors to an op that broadcasts a first dimension of 1."""
    inputs = data_inputs(node)
    if node.op not in BROADCASTING:
        return False
    ranks = {late.rank(tensor) for tensor in inputs if late.is_item_rows(tensor)}
    once = {tensor for tensor in inputs if late.is_user_row(tensor) and late.rank(tensor) in ranks}
    if not once:
        return False
    dtype = late.dtype(f"{node.name}:0")
    addends = [
        late.addend(node, late.once(t), dtype) if t in once else late.many(t) for t in inputs
    ]
    late.write_item(node, addends)
    return True


def _broadcast_exactly(late: LateGraph, node: NodeDef) -> bool:
    """Like `_broadcast`, for ops that keep every element bit-identical."""
    return node.op in EXACT and _broadcast(late, node)


def _concat(late: LateGraph, node: NodeDef) -> bool:
    """Repeats adjacent inputs of a Concat together."""
    if node.op != "ConcatV2":
        return False
    *tensors, axis_tensor = data_inputs(node)
    axis = late.axis(node, axis_tensor)
    runs = _runs(tensors, late.is_user_row)
    if not axis or not any(of_user and len(run) > 1 for of_user, run in runs):
        return False
    rank, dtype = late.rank(tensors[0]) or 0, late.dtype(tensors[0])
    parts = []
    for of_user, run in runs:
        if of_user and len(run) > 1:
            name = late.emit.name("expand", f"{node.name}/neighbours")
            once = late.emit.concat(name, [late.once(t) for t in run], axis, dtype)
            parts.append(late.expand(once, rank, dtype))
        else:
            parts += [late.many(tensor) for tensor in run]
    late.write_item(node, [*parts, axis_tensor]).attr["N"].i = len(parts)
    return True


def _pack(late: LateGraph, node: NodeDef) -> bool:
    """Repeats adjacent inputs of a Pack together: stacks them at one row, then concatenates."""
    if node.op != "Pack":
        return False
    tensors = data_inputs(node)
    axis = attribute(node, "axis").i
    rank, dtype = late.rank(f"{node.name}:0"), late.dtype(tensors[0])
    runs = _runs(tensors, late.is_user_row)
    if not rank or axis % rank == 0 or not any(of_user and len(run) > 1 for of_user, run in runs):
        return False
    kinds = {"T": dtype, "Tdim": tf.int32}
    dimension = late.emit.constant(np.array(axis, np.int32))
    parts = []
    for of_user, run in runs:
        name = late.emit.name("expand", f"{node.name}/neighbours")
        if of_user:
            once = late.emit.add(
                "Pack", name, [late.once(t) for t in run], N=len(run), T=dtype, axis=axis
            )
            parts.append(late.expand(once, rank, dtype))
        else:
            inputs = [[late.many(tensor), dimension] for tensor in run]
            parts += [late.emit.add("ExpandDims", name, pair, **kinds) for pair in inputs]
    together = late.emit.name("expand", f"{node.name}/together")
    late.replace(f"{node.name}:0", late.emit.concat(together, parts, axis, dtype))
    return True


def _add_n(late: LateGraph, node: NodeDef) -> bool:
    """Sums the user's and the items' addends separately, then adds the two sums.

    AddV2 broadcasts, AddN does not.
    """
    if node.op != "AddN":
        return False
    tensors = data_inputs(node)
    ranks = {late.rank(tensor) for tensor in tensors if late.is_item_rows(tensor)}
    user = [t for t in tensors if late.is_user_row(t) and late.rank(t) in ranks]
    if not user:
        return False
    dtype = late.dtype(tensors[0])
    sums = []
    for side, addends in (
        ("item", [late.many(tensor) for tensor in tensors if tensor not in user]),
        ("user", [late.addend(node, late.once(tensor), dtype) for tensor in user]),
    ):
        name = late.emit.name(f"split/{side}", node.name)
        more = len(addends) > 1
        sums.append(
            late.emit.add("AddN", name, addends, N=len(addends), T=dtype) if more else addends[0]
        )
    total = late.emit.add(
        "AddV2", late.emit.name("split/item", f"{node.name}/total"), sums, T=dtype
    )
    late.replace(f"{node.name}:0", total)
    return True


def _runs(tensors: Sequence[str], of_user: Callable[[str], bool]) -> list[tuple[bool, list[str]]]:
    return [(key, list(run)) for key, run in itertools.groupby(tensors, of_user)]


Rule = Callable[[NodeDef], bool]  # writes an item-side node and returns True, or returns False

_RULES = (_broadcast, _concat, _pack, _add_n)
_EXACT_RULES = (_broadcast_exactly, _concat, _pack)


def write_late(
    observed: Observed, prefix: str, *, domains: Colours | None = None
) -> tuple[LateGraph, Products]:
    """Writes the late graph's nodes.

    Args:
        observed: the observed columnar signature.
        prefix: the first part of every new node's name.
        domains: the nodes' colours by domain, if stages will be cut from the graph: products are
            then split by domain, and there may be any number of users. None: products are split
            into the user's and all other columns, and there is one user.

    Returns:
        The late graph and its split products.
    """
    late = LateGraph(observed, prefix, domains)
    late.place_inputs(observed.signature)
    products = Products(late, Splits(late), observed.fused, observed.kernel_rows)
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
