"""Where the stages meet: the states that the last stage reads, as late in the graph as possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from colcast.export.cut._stage import StageGraph
from colcast.export.graph._colours import FREE, PAIR, Colours
from colcast.export.graph._findings import RowKind
from colcast.export.graph._flat_graph import (
    FlatGraph,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)


@dataclass
class Boundary:
    """The nodes of the last stage, and the states that it reads.

    Attributes:
        states: tensors of the late graph by domain, in the graph's order.
        pair: nodes that the last stage runs, in the graph's order.
        again: those of them that read one domain only, with the reason why they are not in its
            stage.
        shapes: Shape nodes among them with known rank and inner sizes, which need only the number
            of rows and no state.
        outputs_wait_for: nodes of the last stage for which nodes of other stages wait.
        waited_for: nodes of the other stages for which nodes of the last stage wait.
    """

    states: dict[str, list[str]] = field(default_factory=dict)
    pair: list[str] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)
    outputs_wait_for: list[str] = field(default_factory=list)
    waited_for: dict[str, list[str]] = field(default_factory=dict)


def find_boundary(
    graph: FlatGraph,
    colours: Colours,
    stages: Mapping[str, StageGraph],
    outputs: Sequence[str],
    rows: str,
) -> Boundary:
    """Finds the states. Tensors that cannot be states are computed for each candidate from others.

    Args:
        graph: the late graph's nodes.
        colours: the nodes' colours.
        stages: the stages by domain, with their findings.
        outputs: the late graph's output tensors.
        rows: the late graph's tensor with the number of candidates.
    """
    boundary = Boundary(waited_for={domain: [] for domain in stages})
    states: dict[str, set[str]] = {domain: set() for domain in stages}
    needed: set[str] = set()
    to_visit: list[str] = []

    def need(name: str) -> None:
        if name not in needed:
            needed.add(name)
            to_visit.append(name)

    def wait(name: str) -> None:
        domain = colours.of[name]
        if domain == PAIR:
            need(name)
        elif domain != FREE and name not in boundary.waited_for[domain]:
            boundary.waited_for[domain].append(name)

    def read(tensor: str) -> None:
        name, domain = producer(tensor), colours[tensor]
        if tensor == rows or domain == FREE:
            return
        if domain == PAIR:
            need(name)
            return
        finding = stages[domain].finding(tensor)
        if finding.kind is RowKind.ROW:
            states[domain].add(tensor)
        elif _is_known_shape(graph.nodes[name], stages[domain]):
            boundary.shapes.add(name)
        else:
            need(name)
            boundary.again[name] = finding.reason

    for output in outputs:
        read(output)
    late_controls = dict.fromkeys(colours.late_controls)
    boundary.outputs_wait_for = [name for name in late_controls if colours.of[name] == PAIR]
    for name in late_controls:
        wait(name)
    while to_visit:
        node = graph.nodes[to_visit.pop()]
        for tensor in data_inputs(node):
            read(tensor)
        for source in control_inputs(node):
            if source in colours.awaited:
                wait(source)
    order = {name: number for number, name in enumerate(graph.nodes)}
    boundary.pair = sorted(needed | boundary.shapes, key=order.__getitem__)
    for domain, tensors in states.items():
        boundary.states[domain] = sorted(tensors, key=lambda t: (order[producer(t)], t))
    return boundary


def _is_known_shape(node: NodeDef, stage: StageGraph) -> bool:
    if node.op != "Shape":
        return False
    finding = stage.finding(data_inputs(node)[0])
    return finding.kind is RowKind.ROW and None not in (finding.shape or (None,))
