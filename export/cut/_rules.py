"""How ops at N rows read one-row user tensors more cheaply than by repeating each.

A rule takes an item-side node, and either writes it and returns True, or leaves it alone. Rules
rely on facts from trial runs: ranks, one row, N rows.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.graph._flat_graph import NodeDef, attribute, data_inputs
from colcast.export.graph._ops import BROADCASTING, EXACT


def broadcast(late: LateGraph, node: NodeDef) -> bool:
    """Leaves the repetition to an op that broadcasts a first dimension of 1."""
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


def broadcast_exactly(late: LateGraph, node: NodeDef) -> bool:
    """Like `broadcast`, for ops that keep every element bit-identical."""
    return node.op in EXACT and broadcast(late, node)


def concat(late: LateGraph, node: NodeDef) -> bool:
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


def pack(late: LateGraph, node: NodeDef) -> bool:
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


def add_n(late: LateGraph, node: NodeDef) -> bool:
    """Adds the user's addends first: AddN does not broadcast, but an addition of two does."""
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
