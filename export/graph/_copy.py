"""Copies nodes of a graph onto placeholders of their own."""

from collections.abc import Container, Iterable, Mapping

import tensorflow as tf
from colcast.export.graph._colours import FREE, Colours
from colcast.export.graph._emitter import Emitter
from colcast.export.graph._flat_graph import (
    GraphDef,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)


class Copy:
    """The new nodes of a signature.

    Attributes:
        emit: collects them.
        inputs: new placeholders by the signature's key.
        outputs: new tensors by the signature's key.
    """

    def __init__(self, colours: Colours, session: tf.compat.v1.Session, prefix: str) -> None:
        """Takes the nodes' colours, a session with the graph, and the prefix of new names."""
        self._colours = colours
        self._session = session
        self._new: dict[str, str] = {}  # replacements of tensors whose nodes are not copied
        self.emit = Emitter(prefix)
        self.inputs: dict[str, str] = {}
        self.outputs: dict[str, str] = {}

    def name(self, tensor: str) -> str:
        """The copy of a tensor, or the tensor itself if it is free."""
        if tensor in self._new:
            return self._new[tensor]
        return tensor if self._colours[tensor] == FREE else self.emit.name("nodes", tensor)

    def dtype(self, tensor: str) -> tf.DType:
        """The dtype of a copied tensor."""
        return self._session.graph.get_tensor_by_name(tensor).dtype.base_dtype

    def added(self) -> GraphDef:
        """The nodes that the outputs need, and every input."""
        return self.emit.needed_for([*self.inputs.values(), *self.outputs.values()])

    def _write(self, node: NodeDef, own: Container[str]) -> None:
        """Copies a node, keeping only control inputs that are free or among its own nodes."""
        inputs = [self.name(tensor) for tensor in data_inputs(node)]
        controls = [
            self._control(source)
            for source in control_inputs(node)
            if source in self._colours.awaited
            and (self._colours.of[source] == FREE or source in own)
        ]
        self.emit.copy(node, self.emit.name("nodes", node.name), inputs, controls)

    def _control(self, node: str) -> str:
        """The copy of a node, for use as a control input."""
        return producer(self.name(f"{node}:0"))

    def write_outputs(self, tensors: Mapping[str, str], waited_for: Iterable[str]) -> None:
        """Writes the outputs by key, each waiting for the given nodes."""
        controls = [self._control(node) for node in waited_for]
        self.outputs = {
            key: self.emit.output(number, self.name(tensor), controls, self.dtype(tensor))
            for number, (key, tensor) in enumerate(tensors.items())
        }
