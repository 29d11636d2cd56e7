"""Where the parts meet: the states that the pair part reads, as late in the graph as possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from colcast.export.late._findings import Kind
from colcast.export.late._flat_graph import (
    FlatGraph,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)
from colcast.export.parts._part import PartGraph
from colcast.export.parts._sides import Part, PartSides

ROWS = "expand/rows:0"
"""The late signature's number of candidates; in the pair part, candidates per row of the user."""


@dataclass
class Boundary:
    """What the pair part reads and computes.

    Attributes:
        states: tensors of the late signature by the part that gives them, in the graph's order.
        pair: nodes that the pair part runs, in the graph's order.
        again: user-only and item-only nodes among them, with the reason.
        shapes: Shape nodes among them of which the tensor's rank and inner sizes are known: they
            need no state, only the number of rows.
        waited_for: nodes of the other parts that a node of the pair part waits for.
    """

    states: dict[Part, list[str]] = field(default_factory=lambda: {Part.USER: [], Part.ITEM: []})
    pair: list[str] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)
    waited_for: dict[Part, list[str]] = field(
        default_factory=lambda: {Part.USER: [], Part.ITEM: []}
    )


def find_boundary(
    graph: FlatGraph,
    sides: PartSides,
    parts: Mapping[Part, PartGraph],
    outputs: Sequence[str],
    rows: str,
) -> Boundary:
    """Finds the states: what cannot be one is computed in the pair part, from what can.

    Args:
        graph: the late signature's nodes.
        sides: the part of each.
        parts: the user's and the items', looked at.
        outputs: the late signature's output tensors.
        rows: its tensor with the number of candidates.
    """
    boundary = Boundary()
    states: dict[Part, set[str]] = {Part.USER: set(), Part.ITEM: set()}
    needed: set[str] = set()

    def read(tensors: Sequence[str]) -> None:
        for tensor in tensors:
            name, part = producer(tensor), sides.part(tensor)
            if tensor == rows or part is Part.FREE:
                continue
            if part is Part.PAIR:
                needed.add(name)
                continue
            finding = parts[part].finding(tensor)
            if finding.kind is Kind.ROW:
                states[part].add(tensor)
            elif _is_known_shape(graph.nodes[name], parts[part]):
                needed.add(name)
                boundary.shapes.add(name)
            else:
                needed.add(name)
                boundary.again[name] = finding.reason

    read(outputs)
    for name, node in reversed(graph.nodes.items()):
        if name in needed and name not in boundary.shapes:
            read(pair_inputs(graph, node))
            _wait(boundary, sides, node, needed)
    boundary.pair = [name for name in graph.nodes if name in needed]
    for part, tensors in states.items():
        order = {name: number for number, name in enumerate(graph.nodes)}
        boundary.states[part] = sorted(tensors, key=lambda t: (order[producer(t)], t))
    return boundary


def pair_inputs(graph: FlatGraph, node: NodeDef) -> list[str]:
    """The tensors that a node reads in the pair part.

    The late signature adds the user's half of a split product as a bias, which is one row's only.
    """
    inputs = data_inputs(node)
    if user := users_half(graph, node):
        return [inputs[0], user]
    return inputs


def users_half(graph: FlatGraph, node: NodeDef) -> str | None:
    """The user's half of a split product, [1, units], where `node` adds it up as a bias."""
    if node.op != "BiasAdd":
        return None
    bias = graph.nodes[producer(node.input[1])]
    return data_inputs(bias)[0] if bias.name == f"{node.name}/user" else None


def _is_known_shape(node: NodeDef, part: PartGraph) -> bool:
    if node.op != "Shape":
        return False
    finding = part.finding(data_inputs(node)[0])
    return finding.kind is Kind.ROW and None not in (finding.shape or (None,))


def _wait(boundary: Boundary, sides: PartSides, node: NodeDef, needed: set[str]) -> None:
    for source in control_inputs(node):
        part = sides.of[source]
        if not sides.awaited(source) or part is Part.FREE:
            continue
        if part is Part.PAIR:
            needed.add(source)
        elif source not in boundary.waited_for[part]:
            boundary.waited_for[part].append(source)
