"""Collects new nodes and copies of a signature's nodes, and adds them to graphs."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._colours import FREE, Colours
from colcast.export.graph._nodes import (
    NOT_COPIED,
    GraphDef,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)
from colcast.export.graph._op_defs import OpDefs
from colcast.export.graph._sessions import Array


class Emitter:
    """Collects NodeDefs.

    Attributes:
        nodes: the new nodes by name.
    """

    def __init__(self, prefix: str) -> None:
        """Starts without nodes. All names will begin with `prefix`, which has no slash."""
        self._prefix = prefix
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], str] = {}
        self._used = Counter[str]()
        self.nodes: dict[str, NodeDef] = {}

    def name(self, folder: str, name: str) -> str:
        return f"{self._prefix}/{folder}/{name}"

    def folder(self, name: str) -> str:
        """The folder that `name` gave a node; "" for a node of the original graph."""
        return name.removeprefix(f"{self._prefix}/").partition("/")[0] if name in self.nodes else ""

    def copy(
        self, node: NodeDef, name: str, inputs: Sequence[str], controls: Sequence[str] = ()
    ) -> NodeDef:
        """Adds a node that applies `node`'s op to other inputs."""
        added = NodeDef(name=name, op=node.op)
        added.input.extend([*inputs, *(f"^{control}" for control in controls)])
        for key, value in node.attr.items():
            if key not in NOT_COPIED:
                added.attr[key].CopyFrom(value)
        if "frame_name" in added.attr:
            added.attr["frame_name"].s = f"{self._prefix}/".encode() + added.attr["frame_name"].s
        self.nodes[name] = added
        return added

    def apply(self, node: NodeDef, name: str, inputs: Sequence[str]) -> NodeDef:
        """Like `copy`, but under an unused name close to `name`."""
        return self.copy(node, self._free(name), inputs)

    def add(self, op: str, name: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Adds an op under an unused name close to `name`; returns its first output."""
        node = NodeDef(name=self._free(name), op=op, input=inputs)
        for key, value in attributes.items():
            _set_attribute(node, key, value)
        self.nodes[node.name] = node
        return f"{node.name}:0"

    def constant(self, value: Array) -> str:
        """A constant tensor; equal small constants share one node."""
        key = (value.dtype.str, value.tobytes(), value.shape) if value.size < 64 else None
        if key in self._constants:
            return self._constants[key]
        dtype = tf.as_dtype(value.dtype)
        tensor = tf.make_tensor_proto(value)
        added = self.add("Const", self.name("const", "value"), [], dtype=dtype, value=tensor)
        if key:
            self._constants[key] = added
        return added

    def output(self, number: int, tensor: str, controls: Iterable[str], dtype: tf.DType) -> str:
        """Adds and returns output `number` of the signature, which waits for `controls`."""
        inputs = [tensor, *(f"^{producer(control)}" for control in controls)]
        return self.add("Identity", self.name("outputs", str(number)), inputs, T=dtype)

    def concat(self, name: str, tensors: Sequence[str], axis: int, dtype: tf.DType) -> str:
        """Concatenates tensors; a single tensor is returned unchanged."""
        if len(tensors) == 1:
            return tensors[0]
        inputs = [*tensors, self.constant(np.array(axis, np.int32))]
        kinds = {"T": dtype, "Tidx": tf.int32}
        return self.add("ConcatV2", name, inputs, N=len(tensors), **kinds)

    def shape(self, name: str, tensor: str, dtype: tf.DType, out_type: tf.DType = tf.int32) -> str:
        return self.add("Shape", name, [tensor], T=dtype, out_type=out_type)

    def section(
        self, name: str, vector: str, begin: int, end: int | str | None, dtype: tf.DType = tf.int32
    ) -> str:
        """Adds the slice vector[begin:end]; `end` may be an int32 tensor of shape [1]."""
        bounds = [
            value if isinstance(value, str) else self.constant(np.array([value or 0], np.int32))
            for value in (begin, end, 1)
        ]
        masks = dict.fromkeys(("begin_mask", "ellipsis_mask", "new_axis_mask"), 0)
        masks["shrink_axis_mask"] = 0
        masks["end_mask"] = int(end is None)
        kinds = {"T": dtype, "Index": tf.int32}
        return self.add("StridedSlice", name, [vector, *bounds], **kinds, **masks)

    def gather(
        self, name: str, params: str, index: str, dtype: tf.DType, of: tf.DType, axis: int = 0
    ) -> str:
        """Adds params[index] along an axis; `of` is the dtype of `index`."""
        kinds = {"Tparams": dtype, "Tindices": of, "Taxis": tf.int32}
        inputs = [params, index, self.constant(np.array(axis, np.int32))]
        return self.add("GatherV2", name, inputs, batch_dims=0, **kinds)

    def kernel_rows(
        self, name: str, kernel: str, rows: Array, dtype: tf.DType, *, transposed: bool
    ) -> str:
        """Gathers rows of a kernel, or columns of a transposed one; slices contiguous rows."""
        if transposed or not lies_together(rows):
            index = self.constant(rows.astype(np.int32))
            return self.gather(name, kernel, index, dtype, tf.int32, int(transposed))
        bounds = ([rows[0], 0], [len(rows), -1])
        begin, size = (self.constant(np.array(bound, np.int32)) for bound in bounds)
        return self.add("Slice", name, [kernel, begin, size], T=dtype, Index=tf.int32)

    def needed_for(self, tensors: Sequence[str]) -> GraphDef:
        """The nodes from which the tensors are computed."""
        needed: set[str] = set()
        stack = [producer(tensor) for tensor in tensors]
        while stack:
            name = stack.pop()
            if name in self.nodes and name not in needed:
                needed.add(name)
                stack += [producer(source) for source in self.nodes[name].input]
        return GraphDef(node=[node for name, node in self.nodes.items() if name in needed])

    def _free(self, name: str) -> str:
        free = name
        while free in self.nodes:
            self._used[name] += 1
            free = f"{name}_{self._used[name]}"
        return free


def _set_attribute(node: NodeDef, key: str, value: Any) -> None:
    attribute = node.attr[key]
    if isinstance(value, tf.DType):
        attribute.type = value.as_datatype_enum
    elif isinstance(value, tf.TensorShape):
        attribute.shape.CopyFrom(value.as_proto())
    elif isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    else:
        attribute.tensor.CopyFrom(value)


def lies_together(numbers: Array) -> bool:
    """Whether ascending numbers are contiguous."""
    return bool(numbers[-1] - numbers[0] == len(numbers) - 1)


class Copy:
    """Writes a new signature as copies of another one's nodes.

    Attributes:
        emit: collects the new nodes.
        inputs: new placeholders by the signature's key.
        outputs: new tensors by the signature's key.
    """

    def __init__(self, colours: Colours, session: tf.compat.v1.Session, prefix: str) -> None:
        """Prepares to copy nodes.

        Args:
            colours: the nodes' colours.
            session: a session with the graph.
            prefix: the first part of every new node's name.
        """
        self._colours = colours
        self._session = session
        self._new: dict[str, str] = {}  # new tensors that replace those whose nodes are not copied
        self.emit = Emitter(prefix)
        self.inputs: dict[str, str] = {}
        self.outputs: dict[str, str] = {}

    def name(self, tensor: str) -> str:
        """The copy of a tensor, or the tensor itself if it is FREE."""
        if tensor in self._new:
            return self._new[tensor]
        return tensor if self._colours[tensor] == FREE else self.emit.name("nodes", tensor)

    def dtype(self, tensor: str) -> tf.DType:
        return self._session.graph.get_tensor_by_name(tensor).dtype.base_dtype

    def added(self) -> GraphDef:
        """The nodes that the outputs need, and every input."""
        return self.emit.needed_for([*self.inputs.values(), *self.outputs.values()])

    def _write(self, node: NodeDef, own: Container[str]) -> None:
        """Copies a node, keeping only control inputs from nodes that are FREE or in `own`."""
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


def import_nodes(graph: tf.Graph, added: GraphDef) -> None:
    """Adds nodes to a graph, which may have some of them already.

    Raises:
      ValueError: the graph has another node of that name.
    """
    known = {operation.name: operation for operation in graph.get_operations()}
    for node in added.node:
        if node.name in known and known[node.name].type != node.op:
            raise ValueError(f"the graph has another node {node.name!r}")
    trial, present = GraphDef(node=[n for n in added.node if n.name not in known]), {}
    own = {node.name for node in trial.node}
    for node in trial.node:
        for source in list(node.input):
            if producer(source) in own:
                continue
            outputs = graph.get_operation_by_name(producer(source)).outputs
            if outputs:
                present[source] = outputs[int(source.partition(":")[2] or 0)]
            else:
                # An assertion outside the copy, which import_graph_def cannot use as control input.
                node.input.remove(source)
    with graph.as_default():
        tf.import_graph_def(trial, input_map=present, name="")


def add_nodes(meta_graph: Any, added: Sequence[NodeDef]) -> None:
    """Adds nodes to a MetaGraphDef, and their ops to its op list, which older loaders check."""
    meta_graph.graph_def.node.extend(added)
    listed = meta_graph.meta_info_def.stripped_op_list.op
    missing = {node.op for node in added} - {op.name for op in listed}
    definitions = OpDefs(meta_graph)
    for op in sorted(missing):
        listed.add().CopyFrom(definitions.get(op))
