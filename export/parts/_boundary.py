"""Where the parts meet: the states that the pair part reads, as late in the graph as possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from colcast.export.late._findings import RowKind
from colcast.export.late._flat_graph import (
    FlatGraph,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)
from colcast.export.parts._part import PartGraph
from colcast.export.parts._part_of_op import Part, PartSides

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
        outputs_wait_for: nodes of the pair part that one of the other parts waits for.
        waited_for: nodes of the other parts that a node of the pair part waits for.
    """

    states: dict[Part, list[str]] = field(default_factory=lambda: {Part.USER: [], Part.ITEM: []})
    pair: list[str] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)
    outputs_wait_for: list[str] = field(default_factory=list)
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
    to_visit: list[str] = []

    def need(name: str) -> None:
        if name not in needed:
            needed.add(name)
            to_visit.append(name)

    def wait(name: str) -> None:
        part = sides.of[name]
        if part is Part.PAIR:
            need(name)
        elif part is not Part.FREE and name not in boundary.waited_for[part]:
            boundary.waited_for[part].append(name)

    def read(tensor: str) -> None:
        name, part = producer(tensor), sides.part(tensor)
        if tensor == rows or part is Part.FREE:
            return
        if part is Part.PAIR:
            need(name)
            return
        finding = parts[part].finding(tensor)
        if finding.kind is RowKind.ROW:
            states[part].add(tensor)
        elif _is_known_shape(graph.nodes[name], parts[part]):
            boundary.shapes.add(name)
        else:
            need(name)
            boundary.again[name] = finding.reason

    for output in outputs:
        read(output)
    boundary.outputs_wait_for = [
        name for name in sides.late_controls if sides.of[name] is Part.PAIR
    ]
    for name in sides.late_controls:
        wait(name)
    while to_visit:
        node = graph.nodes[to_visit.pop()]
        for tensor in pair_inputs(graph, node):
            read(tensor)
        for source in control_inputs(node):
            if sides.awaited(source):
                wait(source)
    order = {name: number for number, name in enumerate(graph.nodes)}
    boundary.pair = sorted(needed | boundary.shapes, key=order.__getitem__)
    for part, tensors in states.items():
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
    return finding.kind is RowKind.ROW and None not in (finding.shape or (None,))
