"""Which ops compute from the user alone: decided by what an op reads, before anything is run."""

import enum
from collections.abc import Collection
from dataclasses import dataclass, field

from colcast.export.late._flat_graph import (
    FlatGraph,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)


class Side(enum.Enum):
    """Where an op of the signature belongs."""

    FREE = "free"  # reads neither user nor items: weights, tables, constants
    USER = "user"  # reads the user and no item: may run at one row
    ITEM = "item"  # runs at N rows


@dataclass
class Sides:
    """The side of every node.

    Attributes:
        of: node name to side.
        from_user: nodes that read a user feature. A node on the user's side that does not is a
            free one which only waits for the user's.
        held: user-only nodes kept on the item side, with the reason.
        unsteady: nodes below a TF1 Switch, Merge or Enter; their tensors may be dead or live in
            a loop's frame, so they cannot be looked at from outside.
        late_controls: item-side nodes (assertions, mostly) that user-side nodes waited for; the
            outputs have to wait for them instead.
    """

    of: dict[str, Side] = field(default_factory=dict)
    from_user: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    unsteady: set[str] = field(default_factory=set)
    late_controls: list[str] = field(default_factory=list)


_TF1_CONTROL_FLOW = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}
_CONTROL_FLOW = _TF1_CONTROL_FLOW | {"If", "StatelessIf", "While", "StatelessWhile", "Case"}
_CONTROL_FLOW |= {f"Ref{op}" for op in _TF1_CONTROL_FLOW} | {"StatelessCase", "For"}
_RANDOM = ("Random", "Multinomial", "TruncatedNormal", "Shuffle", "UniformCandidate", "Dropout")
# Stateful by their registration, but running them once or N times, now or later, is the same.
_ONLY_READS = {
    "Assert", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict", "HashTable",
    "HashTableV2", "LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
    "MutableDenseHashTable", "MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableV2",
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp",
    "Variable", "VariableShape", "VariableV2",
}  # fmt: skip


def sort_sides(graph: FlatGraph, user: Collection[str], items: Collection[str]) -> Sides:
    """Sorts the nodes of a graph.

    Args:
        graph: the signature's nodes.
        user: names of the placeholders that a request feeds once.
        items: names of the placeholders of item features.

    Returns:
        The side of each node. An op that is control flow, random or has side effects, and every
        op that reads such a one, is never on the user's side.
    """
    sides = Sides(from_user=set(user))
    from_items, pinned = set(items), set[str]()
    for name, node in graph.nodes.items():
        sources = {producer(tensor) for tensor in data_inputs(node)}
        waits_for = set(control_inputs(node))
        for mark in (sides.from_user, from_items):
            if sources & mark:
                mark.add(name)
        if node.op in _TF1_CONTROL_FLOW or (sources | waits_for) & sides.unsteady:
            sides.unsteady.add(name)
        reason = _why_pinned(node, graph)
        if reason or (sources | waits_for) & pinned:
            pinned.add(name)
        if reason and name in sides.from_user and name not in from_items:
            sides.held[name] = reason
        sides.of[name] = _side(name, sources | waits_for, sides, from_items, pinned)
        if sides.of[name] is Side.USER:
            sides.late_controls += [c for c in waits_for if sides.of[c] is Side.ITEM]
    return sides


def _side(
    name: str, sources: set[str], sides: Sides, from_items: set[str], pinned: set[str]
) -> Side:
    reads_inputs = name in sides.from_user or name in from_items
    all_free = all(sides.of.get(source) is Side.FREE for source in sources)
    if not reads_inputs and all_free and name not in sides.unsteady:
        return Side.FREE
    if name in from_items or name in pinned or name in sides.unsteady:
        return Side.ITEM
    return Side.USER


def _why_pinned(node: NodeDef, graph: FlatGraph, seen: frozenset[str] = frozenset()) -> str | None:
    """Why an op must not run at another number of rows, or None."""
    if node.op in _CONTROL_FLOW:
        return f"control flow ({node.op})"
    if any(word in node.op for word in _RANDOM):
        return f"random op ({node.op})"
    for called in _functions(node):
        if called in graph.library and called not in seen:
            for inner in graph.library[called].node_def:
                if reason := _why_pinned(inner, graph, seen | {called}):
                    return f"{reason} in function {called}"
    if node.op in _ONLY_READS or node.op.endswith("PartitionedCall"):
        return None
    return f"stateful op ({node.op})" if graph.op_defs.get(node.op).is_stateful else None


def _functions(node: NodeDef) -> list[str]:
    values = node.attr.values()
    single = [value.func.name for value in values if value.HasField("func")]
    return single + [f.name for v in values if v.HasField("list") for f in v.list.func]
