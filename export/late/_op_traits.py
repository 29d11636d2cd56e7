"""What an op's type says about where it may run."""

from collections.abc import Iterator

from colcast.export.late._exact_ops import EXACT_OPS
from colcast.export.late._flat_graph import FlatGraph, NodeDef

# Their outputs may be dead, or live in the frame of a loop.
TF1_CONTROL_FLOW = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}
TF1_CONTROL_FLOW |= {f"Ref{op}" for op in TF1_CONTROL_FLOW}

_CONTROL_FLOW = {"If", "While", "Case"}
_CONTROL_FLOW |= {f"Stateless{op}" for op in _CONTROL_FLOW} | {"For"} | TF1_CONTROL_FLOW
_RANDOM = ("Random", "Multinomial", "TruncatedNormal", "Shuffle", "UniformCandidate", "Dropout")
# Stateful by their registration, but running them once or N times, now or later, is the same.
_ONLY_READS = {
    "Assert", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict", "HashTable",
    "HashTableV2", "LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
    "MutableDenseHashTable", "MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableV2",
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp",
    "Variable", "VariableShape", "VariableV2",
}  # fmt: skip


def why_pinned(node: NodeDef, graph: FlatGraph) -> str | None:
    """Why an op must run at N rows if it runs at N rows in the model; None if it need not."""
    for inner in _with_functions(node, graph, set()):
        if inner.op in _CONTROL_FLOW:
            return f"control flow ({inner.op})"
        if _is_random(inner):
            return f"random op ({inner.op})"
        if _changes_something(inner, graph):
            return f"stateful op ({inner.op})"
    return None


def why_inexact(node: NodeDef) -> str | None:
    """Why an op may give other bits at one row than at N; None if it gives the same."""
    return None if node.op in EXACT_OPS else f"may round differently at one row ({node.op})"


def has_effect(node: NodeDef, graph: FlatGraph) -> bool:
    """Whether it matters when an op runs, apart from an assertion that fails."""
    return any(
        _changes_something(inner, graph) and not _is_random(inner)
        for inner in _with_functions(node, graph, set())
    )


def may_fail(node: NodeDef, graph: FlatGraph) -> bool:
    """Whether an op is, or calls, an assertion."""
    return any(inner.op == "Assert" for inner in _with_functions(node, graph, set()))


def _changes_something(node: NodeDef, graph: FlatGraph) -> bool:
    if node.op in _ONLY_READS or _functions(node):
        return False
    return bool(graph.op_defs.get(node.op).is_stateful)


def _is_random(node: NodeDef) -> bool:
    return any(word in node.op for word in _RANDOM)


def _with_functions(node: NodeDef, graph: FlatGraph, seen: set[str]) -> Iterator[NodeDef]:
    """A node and the nodes of every function it calls."""
    yield node
    for name in (*_functions(node), node.op):
        if name in graph.library and name not in seen:
            seen.add(name)
            for inner in graph.library[name].node_def:
                yield from _with_functions(inner, graph, seen)


def _functions(node: NodeDef) -> list[str]:
    values = node.attr.values()
    single = [value.func.name for value in values if value.HasField("func")]
    return single + [f.name for v in values if v.HasField("list") for f in v.list.func]
