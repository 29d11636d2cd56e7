"""Finds a domain's states, decides whether they pay, and writes the ops before them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from colcast.export.cut._findings import Finding, RowKind
from colcast.export.cut._stages_report import State
from colcast.export.graph._colours import FREE, PAIR, Colours
from colcast.export.graph._emitter import Copy
from colcast.export.graph._nodes import (
    FlatGraph,
    NodeDef,
    ancestors,
    control_inputs,
    data_inputs,
    producer,
    scope_name,
)


class StageGraph(Copy):
    """A graph with copies of a domain's ops. Its inputs are the domain's columns [None, ...]."""

    def __init__(
        self,
        graph: FlatGraph,
        colours: Colours,
        session: tf.compat.v1.Session,
        prefix: str,
        domain: str,
        columns: Mapping[str, str],
    ) -> None:
        """Copies the nodes.

        Args:
            graph: the late graph's nodes.
            colours: the nodes' colours.
            session: a session with the graph.
            prefix: the prefix of new names.
            domain: the domain.
            columns: the late graph's placeholders of this domain, by column.
        """
        super().__init__(colours, session, prefix)
        self._graph = graph
        for column, tensor in columns.items():
            node = graph.nodes[producer(tensor)]
            added = self.emit.apply(node, self.emit.name("inputs", scope_name(column)), [])
            self._new[tensor] = self.inputs[column] = f"{added.name}:0"
        own = {name for name, colour in colours.of.items() if colour == domain}
        read = self._read_by(own)
        for name, node in graph.nodes.items():
            if name in read and f"{name}:0" not in self._new:
                self._write(node, own)

    def _read_by(self, own: set[str]) -> set[str]:
        """The domain's nodes, and those of `Colours.waiting` that they read.

        Args:
            own: the domain's nodes.
        """
        read = set(own)
        for name, node in reversed(self._graph.nodes.items()):
            if name in read:
                read |= self._colours.waiting.intersection(map(producer, data_inputs(node)))
        return read


@dataclass
class Boundary:
    """The nodes of the last stage, and the states that it reads.

    Attributes:
        states: tensors of the late graph by domain, in the graph's order.
        pair: nodes that the last stage runs, in the graph's order.
        again: nodes of `pair` that read a single domain, with the reason why its stage lacks them.
        shapes: Shape nodes of `pair` with known rank and inner sizes; they need only the number of
            rows, and no state.
        outputs_wait_for: nodes of the last stage that must run before nodes of other stages.
        waited_for: nodes of the other stages that must run before nodes of the last stage.
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
    domains: Iterable[str],
    finding: Callable[[str], Finding],
    outputs: Sequence[str],
    rows: str,
) -> Boundary:
    """Finds the states. A tensor that cannot be a state is recomputed for each candidate.

    Args:
        graph: the late graph's nodes.
        colours: the nodes' colours.
        domains: the domains with a stage.
        finding: says whether a domain's tensor can be a state (ROW).
        outputs: the late graph's output tensors.
        rows: the late graph's tensor with the number of candidates.
    """
    boundary = Boundary(waited_for={domain: [] for domain in domains})
    states: dict[str, set[str]] = {domain: set() for domain in boundary.waited_for}
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
        found = finding(tensor)
        if found.kind is RowKind.ROW:
            states[domain].add(tensor)
        elif _is_known_shape(graph.nodes[name], finding):
            boundary.shapes.add(name)
        else:
            need(name)
            boundary.again[name] = found.reason

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


def _is_known_shape(node: NodeDef, finding: Callable[[str], Finding]) -> bool:
    if node.op != "Shape":
        return False
    of = finding(data_inputs(node)[0])
    return of.kind is RowKind.ROW and None not in (of.shape or (None,))


# Gathering a state costs about as much as looking up an embedding. So a stage must do more than
# read its columns, and either save a product with weights or have states no larger than the columns
# they replace.
_LENGTH = 64  # the assumed size of an unknown dimension, usually a list's length
_STRING = 24  # bytes of a short string in TensorFlow
_READING = {
    "Cast", "ConcatV2", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "Pack", "Placeholder",
    "Reshape", "Shape", "Slice", "Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Transpose",
}  # fmt: skip
_PRODUCTS = {
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul",
    "SparseTensorDenseMatMul",
}  # fmt: skip


def row_bytes(states: Iterable[State]) -> int:
    return sum(_bytes(tf.as_dtype(state.dtype), state.shape[1:]) for state in states)


def why_no_gain(
    graph: FlatGraph, colours: Colours, states: Sequence[State], columns: Iterable[tf.Tensor]
) -> str:
    """Why a domain gets no stage; "" if its stage saves time.

    Args:
        graph: the late graph's nodes.
        colours: the nodes' colours.
        states: the domain's states.
        columns: the domain's placeholders.
    """
    if not states:
        return "no output depends on its features"
    ops = _ops(graph, colours, [state.tensor for state in states])
    if ops <= _READING:
        return "its ops only read its columns"
    given = sum(_bytes(column.dtype, column.shape[1:].as_list()) for column in columns)
    kept = row_bytes(states)
    if kept > given and ops.isdisjoint(_PRODUCTS):
        return f"its states take {kept:,} bytes per row, its columns {given:,}, and save no product"
    return ""


def _ops(graph: FlatGraph, colours: Colours, tensors: Sequence[str]) -> set[str]:
    """The types of the ops that compute these tensors and belong to the tensors' domain."""
    others = {name for name, of in colours.of.items() if of != colours[tensors[0]]}
    own = ancestors(graph.nodes, tensors, stop=others, controls=False)
    return {graph.nodes[name].op for name in own}


def _bytes(dtype: tf.DType, shape: Sequence[int | None]) -> int:
    size = _STRING if dtype == tf.string else np.dtype(dtype.as_numpy_dtype).itemsize
    return size * math.prod(_LENGTH if each is None else each for each in shape)
