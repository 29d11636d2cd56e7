"""The nodes of a function, which carry less information than the nodes of a graph."""

from collections import defaultdict
from collections.abc import Sequence

from colcast.export.graph._flat_graph import FlatGraph, NodeDef


def in_order(nodes: Sequence[NodeDef]) -> list[NodeDef]:
    """The nodes of a function, inputs first."""
    by_name = {node.name: node for node in nodes}
    readers: dict[str, list[str]] = defaultdict(list)
    waiting = {}
    for node in nodes:
        sources = {source.removeprefix("^").partition(":")[0] for source in node.input}
        sources &= by_name.keys()
        waiting[node.name] = len(sources)
        for source in sources:
            readers[source].append(node.name)
    ready = [name for name, count in waiting.items() if not count]
    ordered = []
    while ready:
        name = ready.pop()
        ordered.append(by_name[name])
        for reader in readers[name]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return ordered


def output_counts(node: NodeDef, graph: FlatGraph) -> dict[str, int]:
    """How many tensors a node outputs under each output name in its definition."""
    counts = {}
    for argument in graph.op_defs.get(node.op).output_arg:
        if argument.number_attr:
            counts[argument.name] = int(node.attr[argument.number_attr].i)
        elif argument.type_list_attr:
            counts[argument.name] = len(node.attr[argument.type_list_attr].list.type)
        else:
            counts[argument.name] = 1
    return counts


def declared(node: NodeDef, number: int) -> Sequence[int | None] | None:
    """The shape of an output as recorded by its node in a function."""
    if node.op == "Const":
        return [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
    if number >= len(shapes) or shapes[number].unknown_rank:
        return None
    return [None if dim.size < 0 else dim.size for dim in shapes[number].dim]
