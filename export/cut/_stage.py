"""The ops of one domain as a separate graph, which takes any number of rows."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import tensorflow as tf
from colcast.export.graph._colours import Colours
from colcast.export.graph._copy import Copy
from colcast.export.graph._distrust import distrust
from colcast.export.graph._findings import Finding, Findings, Probe, RowKind, fetchable
from colcast.export.graph._flat_graph import FlatGraph, data_inputs, producer
from colcast.export.graph._nodes import scope_name
from colcast.export.graph._requests import Columns
from colcast.export.graph._row_findings import classify_rows

_BATCHES = (3, 3, 3, 3, 64)  # numbers of rows in the batches from which states are found


class StageGraph(Copy):
    """Copies of a domain's ops, whose inputs are columns [None, ...].

    Attributes:
        findings: by tensor of the late graph; ROW means that it can be a state.
    """

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
        self._domain = domain
        self.findings: Findings = {}
        for column, tensor in columns.items():
            node = graph.nodes[producer(tensor)]
            added = self.emit.apply(node, self.emit.name("inputs", scope_name(column)), [])
            if added.attr["shape"].shape.dim:
                added.attr["shape"].shape.dim[0].size = -1
            self._new[tensor] = self.inputs[column] = f"{added.name}:0"
        self._old = {new: old for old, new in self._new.items()}
        own = {name for name, colour in colours.of.items() if colour == domain}
        read = self._read_by(own)
        for name, node in graph.nodes.items():
            if name in read and f"{name}:0" not in self._new:
                self._write(node, own)

    def _read_by(self, own: set[str]) -> set[str]:
        """The domain's nodes, and nodes they read that have a column only as a control input."""
        read = set(own)
        for name, node in reversed(self._graph.nodes.items()):
            if name in read:
                read |= self._colours.waiting.intersection(map(producer, data_inputs(node)))
        return read

    def probe(self) -> Probe:
        """Runs all tensors of the stage. Its nodes must be in the session's graph."""
        made = fetchable(self._session.graph, self.emit.nodes)
        tensors = {self._late_name(tensor): tensor for tensor in made}
        return Probe(self._session, self.inputs, tensors, inner=True)

    def find_states(self, probe: Probe, draw: Callable[[int], Columns], tolerance: float) -> None:
        """Runs the stage to find the tensors that can be states.

        Args:
            probe: runs its tensors.
            draw: draws that many rows of every column of the domain.
            tolerance: largest difference that counts as equal.

        Raises:
            ExportError: the stage fails on several batches in a row.
        """
        found = classify_rows(probe, draw, _BATCHES, tolerance)
        trusted = distrust(self._graph, self._colours, self._domain, found)
        self.findings = {
            tensor: replace(finding, shape=self._declared_shape(tensor, len(finding.shape or ())))
            if finding.kind is RowKind.ROW
            else finding
            for tensor, finding in trusted.items()
        }

    def _declared_shape(self, tensor: str, rank: int) -> tuple[int | None, ...]:
        """The declared shape of a row: a size that is equal in all trials may be a coincidence."""
        shape = self._session.graph.get_tensor_by_name(self.name(tensor)).shape
        if shape.rank is None:
            return (1, *[None] * (rank - 1))
        return (1, *shape[1:])

    def finding(self, tensor: str) -> Finding:
        """The finding about a tensor of the late graph."""
        return self.findings.get(tensor, Finding(RowKind.OTHER, reason="cannot be looked at"))

    def _late_name(self, tensor: str) -> str:
        return self._old.get(tensor) or tensor.removeprefix(self.emit.name("nodes", ""))
