"""A late signature's nodes for any number of users."""

from collections.abc import Iterable

from colcast.export.graph._flat_graph import FlatGraph, NodeDef, producer


def for_any_users(graph: FlatGraph, user: Iterable[str]) -> None:
    """Rewrites what holds for one user only, in place.

    That is the check that its columns have one row, and its half of a split product, [1, units],
    which is added as a bias, [units].

    Args:
        graph: a late signature's nodes.
        user: its placeholders of the user's columns.
    """
    placeholders = set(map(producer, user))
    for name, node in graph.nodes.items():
        if node.op == "EnsureShape" and producer(node.input[0]) in placeholders:
            graph.nodes[name] = _of_any_rows(node)
        elif node.op == "BiasAdd" and producer(node.input[1]) == f"{name}/user":
            graph.nodes[name] = _sum(node, graph.nodes[f"{name}/user"].input[0])


def _of_any_rows(check: NodeDef) -> NodeDef:
    changed = NodeDef()
    changed.CopyFrom(check)
    changed.attr["shape"].shape.dim[0].size = -1
    return changed


def _sum(biased: NodeDef, half: str) -> NodeDef:
    changed = NodeDef(name=biased.name, op="AddV2", input=[biased.input[0], half])
    changed.attr["T"].CopyFrom(biased.attr["T"])
    return changed
