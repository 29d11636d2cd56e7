"""The ops of one domain as a graph of their own, which takes any number of rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import tensorflow as tf
from colcast.export._columns import scope_name
from colcast.export.graph._colours import FREE, Colours
from colcast.export.graph._distrust import distrust
from colcast.export.graph._emitter import Emitter
from colcast.export.graph._findings import Finding, Findings, Probe, RowKind, fetchable
from colcast.export.graph._flat_graph import (
    FlatGraph,
    GraphDef,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)
from colcast.export.graph._requests import Columns
from colcast.export.graph._row_findings import classify_rows

_BATCHES = (3, 3, 3, 3, 64)  # rows of the batches that states are looked for with


class StageGraph:
    """A domain's ops, copied.

    Attributes:
        inputs: new placeholders by column, [None, ...].
        findings: by tensor of the late signature; ROW can be a state.
    """

    def __init__(
        self,
        graph: FlatGraph,
        colours: Colours,
        domain: str,
        columns: Mapping[str, str],
        prefix: str,
    ) -> None:
        """Copies the nodes.

        Args:
            graph: the late signature's nodes.
            colours: of each.
            domain: the domain.
            columns: the late signature's placeholders of this domain, by column.
            prefix: of the new nodes' names.
        """
        self._graph = graph
        self._colours = colours
        self._domain = domain
        self._emit = Emitter(prefix)
        self._placed: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        self.findings: Findings = {}
        for column, tensor in columns.items():
            node = graph.nodes[producer(tensor)]
            added = self._emit.apply(node, self._emit.name("inputs", scope_name(column)), [])
            if added.attr["shape"].shape.dim:
                added.attr["shape"].shape.dim[0].size = -1
            self._placed[tensor] = self.inputs[column] = f"{added.name}:0"
        for name in self._own():
            if f"{name}:0" not in self._placed:
                self._copy(graph.nodes[name])

    def _own(self) -> list[str]:
        """The domain's nodes, and what they read that only waits for columns."""
        own = {name for name, colour in self._colours.of.items() if colour == self._domain}
        for name, node in reversed(self._graph.nodes.items()):
            if name in own:
                own |= self._colours.waiting.intersection(map(producer, data_inputs(node)))
        return [name for name in self._graph.nodes if name in own]

    def find_states(
        self,
        session: tf.compat.v1.Session,
        draw: Callable[[int], Columns],
        tolerance: float,
    ) -> None:
        """Runs the stage, whose nodes are in the session's graph, to find its states.

        Args:
            session: runs it.
            draw: gives that many rows of every column of the domain.
            tolerance: difference taken for equal.

        Raises:
            ExportError: it fails on batch after batch.
        """
        tensors = {
            self._late_name(tensor): tensor for tensor in fetchable(session.graph, self._emit.nodes)
        }
        found = classify_rows(Probe(session, self.inputs, tensors), draw, _BATCHES, tolerance)
        trusted = distrust(self._graph, self._colours, self._domain, found)
        self.findings = {
            tensor: replace(
                finding, shape=self._declared_shape(session, tensor, len(finding.shape or ()))
            )
            if finding.kind is RowKind.ROW
            else finding
            for tensor, finding in trusted.items()
        }

    def _declared_shape(
        self, session: tf.compat.v1.Session, tensor: str, rank: int
    ) -> tuple[int | None, ...]:
        """The shape of a row as the graph has it: the same size in all trials may be chance."""
        shape = session.graph.get_tensor_by_name(self.name(tensor)).shape
        if shape.rank is None:
            return (1, *[None] * (rank - 1))
        return (1, *shape[1:])

    def finding(self, tensor: str) -> Finding:
        """What running showed of a tensor of the late signature."""
        return self.findings.get(tensor, Finding(RowKind.OTHER, reason="cannot be looked at"))

    def name(self, tensor: str) -> str:
        """The stage's copy of a tensor of the late signature."""
        if tensor in self._placed:
            return self._placed[tensor]
        if self._colours[tensor] == FREE:
            return tensor
        return self._emit.name("nodes", tensor)

    def every_node(self) -> GraphDef:
        """All copies."""
        return GraphDef(node=self._emit.nodes.values())

    def finish(
        self, states: Sequence[str], waited_for: Sequence[str], session: tf.compat.v1.Session
    ) -> tuple[list[str], GraphDef]:
        """Writes the states as outputs, behind the nodes that the candidates would have waited for.

        Returns the new tensors and the nodes they need that are not in the session's graph, and
        those that are.
        """
        controls = [self.name(f"{node}:0") for node in waited_for]
        outputs = []
        for number, state in enumerate(states):
            dtype = session.graph.get_tensor_by_name(state).dtype.base_dtype
            outputs.append(self._emit.output(number, self.name(state), controls, dtype))
        return outputs, self._emit.needed_for([*self.inputs.values(), *outputs])

    def _late_name(self, tensor: str) -> str:
        late = {new: old for old, new in self._placed.items()}
        return late.get(tensor) or tensor.removeprefix(self._emit.name("nodes", ""))

    def _copy(self, node: NodeDef) -> None:
        inputs = [self.name(tensor) for tensor in data_inputs(node)]
        controls = [
            producer(self.name(f"{source}:0"))
            for source in control_inputs(node)
            if source in self._colours.awaited and self._colours.of[source] in (FREE, self._domain)
        ]
        name = self._emit.name("nodes", node.name)
        if node.op == "EnsureShape" and inputs[0] in self.inputs.values():
            added = self._emit.copy(node, name, inputs, controls)  # of one row; here of any number
            added.attr["shape"].shape.dim[0].size = -1
        else:
            self._emit.copy(node, name, inputs, controls)
