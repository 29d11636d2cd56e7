"""Rewrites a signature's graph with the user side at one row and the rest at N rows.

A tensor may exist in three versions. A FREE tensor is shared with the original graph. A user-side
tensor exists *once*, computed from the one-row placeholders; if an op at N rows reads it, it also
exists as *many*: repeated if it is row-like, unchanged if it is constant, otherwise computed again
from the *many* versions of its inputs. An item-side tensor exists only as *many*.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from colcast.export.cut._findings import Finding, RowKind
from colcast.export.cut._observed import Observed
from colcast.export.graph._colours import FREE, ITEM, PAIR, USER, Colours
from colcast.export.graph._emitter import Copy
from colcast.export.graph._nodes import (
    FlatGraph,
    NodeDef,
    attribute,
    control_inputs,
    data_inputs,
    producer,
    scope_name,
)
from colcast.export.graph._ops import computed_from_weights
from colcast.export.graph._sessions import Array
from colcast.export.graph._signature import Signature


class LateGraph(Copy):
    """The nodes written so far, and facts about the original graph for the rules.

    Attributes:
        one_user: whether user columns must have one row. The graph then checks that.
        rows: the number of candidates, int32 [1].
    """

    def __init__(self, observed: Observed, prefix: str, domains: Colours | None = None) -> None:
        """Starts an empty graph.

        Args:
            observed: the observed columnar signature.
            prefix: the first part of every new node's name.
            domains: the nodes' colours by domain, if the graph will be cut into stages (any number
                of users). None: everything outside the user part belongs to the items.
        """
        super().__init__(observed.colours, observed.session, prefix)
        signature = observed.signature
        self.one_user = domains is None
        self._domains = domains
        self._nodes = observed.graph.nodes
        self._findings = observed.findings
        self._fused = observed.fused
        self._inputs = {producer(tensor) for tensor in signature.inputs.values()}
        self._item_inputs = set(signature.items.values())
        self._from_weights = computed_from_weights(observed.graph)
        self._again = self._nodes_computed_again(observed.graph, list(signature.outputs.values()))
        self._replaced: dict[str, str] = {}
        self._expanded: dict[str, str] = {}
        self._multiples: dict[tuple[int, int], str] = {}
        self.rows = ""

    def side(self, tensor: str) -> str:
        """The tensor's side: USER or FREE, or PAIR if its node runs at N rows."""
        return self._colours[tensor]

    def finding(self, tensor: str) -> Finding:
        """What the trials found about the tensor; OTHER if it was not observed."""
        return self._findings.get(tensor, Finding(RowKind.OTHER))

    def domain(self, tensor: str) -> str:
        """The domain that the tensor reads, or PAIR if several; without `domains`, USER or ITEM."""
        if self.side(tensor) == USER:
            return USER
        return self._domains[tensor] if self._domains else ITEM

    def rank(self, tensor: str) -> int | None:
        """The number of dimensions that the trials found; None if unknown."""
        shape = self.finding(tensor).shape
        return None if shape is None else len(shape)

    def width(self, tensor: str) -> int | None:
        """The size of the last dimension; None if it is unknown or varies."""
        shape = self.finding(tensor).shape
        return shape[-1] if shape else None

    def axis(self, concat: NodeDef, axis: str) -> int | None:
        """A Concat's axis, counted from the front; None if unknown."""
        rank = self.rank(f"{concat.name}:0")
        if not rank or not self.is_constant(axis):
            return None
        return int(self.value(axis)) % rank

    def is_fixed(self, tensor: str) -> bool:
        """Whether the tensor has the same value in every request, like a constant or a variable."""
        return self.side(tensor) == FREE and producer(tensor) not in self._colours.pinned

    def is_constant(self, tensor: str) -> bool:
        """Whether the tensor is fixed and does not depend on weights."""
        return self.is_fixed(tensor) and producer(tensor) not in self._from_weights

    def value(self, tensor: str) -> Array:
        node = self._nodes[producer(tensor)]
        if node.op == "Const":  # a session would first prepare its whole graph
            return np.asarray(tf.make_ndarray(node.attr["value"].tensor))
        return np.asarray(self._session.run(tensor))

    def tensors_of(self, node: str) -> list[str]:
        return [t.name for t in self._session.graph.get_operation_by_name(node).outputs]

    def static_shape(self, tensor: str) -> tuple[int, ...]:
        shape = self._session.graph.get_tensor_by_name(tensor).shape
        return tuple(shape if shape.is_fully_defined() else self._session.run(tensor).shape)

    def is_user_row(self, tensor: str, rank: int | None = None) -> bool:
        """Whether the tensor is on the user side and has one row (and `rank`, if given)."""
        return self.side(tensor) == USER and self.finding(tensor).is_one_row(rank)

    def is_item_rows(self, tensor: str, rank: int | None = None) -> bool:
        """Whether the tensor is on the item side and has N rows (and `rank`, if given)."""
        return self.side(tensor) == PAIR and self.finding(tensor).is_one_row(rank)

    # A tensor's name in the new graph.

    def once(self, tensor: str) -> str:
        """The one-row version of a user-side tensor; for a free tensor, the tensor itself."""
        if producer(tensor) in self._inputs:
            return self._new[tensor]
        return tensor if self.side(tensor) == FREE else self.emit.name("user", tensor)

    def name(self, tensor: str) -> str:
        """The tensor at N rows, for `Copy` to write as an output."""
        return self.many(tensor)

    def many(self, tensor: str) -> str:
        """The tensor at N rows."""
        if tensor in self._replaced:
            return self._replaced[tensor]
        side, finding = self.side(tensor), self.finding(tensor)
        if side == FREE:
            return tensor
        if tensor in self._item_inputs:
            return self._new[tensor]
        if side == PAIR and producer(tensor) not in self._inputs:
            return self.emit.name("item", tensor)
        if finding.kind is RowKind.CONSTANT:
            return self.once(tensor)
        if finding.kind is RowKind.OTHER:
            return self.emit.name("item", tensor)
        if tensor not in self._expanded:
            rank, dtype = len(finding.shape or ()), self.dtype(tensor)
            self._expanded[tensor] = self.expand(self.once(tensor), rank, dtype, finding.axis)
        return self._expanded[tensor]

    def addend(self, node: NodeDef, once: str, dtype: tf.DType) -> str:
        """Returns a one-row addend; hides its static shape if a Relu reads the sum `node`.

        TensorFlow would recognise a bias by its shape and fuse it with the Relu. In the model the
        addend has N rows, so TensorFlow does not fuse it.
        """
        if not self.one_user or node.name not in self._fused.alone:
            return once
        name = self.emit.name("expand", f"{node.name}/addend")
        return self.emit.section(name, once, 0, self.rows, dtype)

    def replace(self, tensor: str, new: str) -> None:
        """Makes `new` the tensor's version at N rows."""
        self._replaced[tensor] = new

    def expand(self, once: str, rank: int, dtype: tf.DType, axis: int = 0) -> str:
        """Repeats a tensor of one row (or one block of rows) N times along an axis."""
        name = self.emit.name("expand", producer(once).rpartition("/")[2])
        kinds = {"T": dtype, "Tmultiples": tf.int32}
        return self.emit.add("Tile", name, [once, self.multiples(rank, axis)], **kinds)

    def multiples(self, rank: int, axis: int = 0) -> str:
        """A vector of length `rank`: N at `axis`, else 1."""
        if (rank, axis) not in self._multiples:
            name = self.emit.name("expand", f"multiples_{rank}_{axis}")
            before, after = (np.ones(n, np.int32) for n in (axis, rank - 1 - axis))
            parts = [self.rows]
            if before.size:
                parts.insert(0, self.emit.constant(before))
            if after.size:
                parts.append(self.emit.constant(after))
            self._multiples[rank, axis] = self.emit.concat(name, parts, 0, tf.int32)
        return self._multiples[rank, axis]

    def place_inputs(self, signature: Signature) -> None:
        """Writes the placeholders. If `one_user`, also writes checks that user inputs have one row.

        TensorFlow does not compare a fed value with the placeholder's shape, and a batching session
        would feed the rows of several requests, and so of several users. The placeholders leave the
        number of rows open, because an optimizer removes a check that cannot fail according to the
        static shape.
        """
        for column, tensor in signature.inputs.items():
            placeholder = self._session.graph.get_tensor_by_name(tensor)
            added = self.emit.apply(
                placeholder.op.node_def, self.emit.name("inputs", scope_name(column)), []
            )
            self._new[tensor] = self.inputs[column] = f"{added.name}:0"
            shape = placeholder.shape
            if column not in signature.once or not shape.rank or not self.one_user:
                continue
            inner = shape[1:]
            rows_open = tf.TensorShape([None]).concatenate(inner)
            added.attr["shape"].shape.CopyFrom(rows_open.as_proto())
            expected = tf.TensorShape([1 if shape[0] is None else shape[0]]).concatenate(inner)
            kinds = {"T": placeholder.dtype, "shape": expected}
            name = self.emit.name("one_row", scope_name(column))
            self._new[tensor] = self.emit.add("EnsureShape", name, [f"{added.name}:0"], **kinds)
        column, first = next(iter(signature.items.items()))
        name = self.emit.name("expand", "candidates")
        shape = self.emit.shape(name, self.inputs[column], self.dtype(first))
        self.rows = self.emit.section(self.emit.name("expand", "rows"), shape, 0, 1)

    def is_input(self, node: str) -> bool:
        """Whether a node is a placeholder of the signature."""
        return node in self._inputs

    def finish(self, signature: Signature) -> Signature:
        """Writes the outputs; returns the new signature."""
        self.write_outputs(signature.outputs, dict.fromkeys(self._colours.late_controls))
        return signature.moved(self.inputs, self.outputs)

    def write_user(self, node: NodeDef) -> None:
        """Writes a user-side node at one row; also at N rows if other nodes need it at N rows."""
        sources = [c for c in self._awaited(node) if self._colours.of[c] != PAIR]
        controls = [self._control(source) for source in sources]
        inputs = [self.once(tensor) for tensor in data_inputs(node)]
        self._copy(node, "user", inputs, controls)
        if node.name not in self._again:
            return
        if node.op == "Shape" and self.finding(data_inputs(node)[0]).kind is RowKind.ROW:
            self._scaled_shape(node)
        else:
            self.write_item(node)

    def write_item(self, node: NodeDef, inputs: Sequence[str] | None = None) -> NodeDef:
        """Writes a node at N rows; its inputs are also at N rows unless others are given."""
        if inputs is None:
            inputs = [self.many(tensor) for tensor in data_inputs(node)]
        controls = [self._control(source) for source in self._awaited(node)]
        return self._copy(node, "item", inputs, controls)

    def _copy(
        self, node: NodeDef, folder: str, inputs: Sequence[str], controls: Sequence[str]
    ) -> NodeDef:
        """Copies a node so that TensorFlow fuses a Relu if and only if it does in the model."""
        copy = self.emit.copy(node, self.emit.name(folder, node.name), inputs, controls)
        if node.name in self._fused.moved and node.op == "Relu":
            zero = np.zeros((), self.dtype(f"{node.name}:0").as_numpy_dtype)
            copy.op = "Maximum"
            copy.input.insert(1, self.emit.constant(zero))
        elif node.name in self._fused.may_move:
            copy.op = "BiasAdd"
            if self._session.graph.get_tensor_by_name(data_inputs(node)[0]).shape.rank == 1:
                copy.input[0], copy.input[1] = copy.input[1], copy.input[0]
        return copy

    def _awaited(self, node: NodeDef) -> list[str]:
        return [source for source in control_inputs(node) if source in self._colours.awaited]

    def _control(self, node: str) -> str:
        version = self.once if self._colours.of[node] == USER else self.many
        return producer(version(f"{node}:0"))

    def _scaled_shape(self, node: NodeDef) -> None:
        # The shape of a repeated tensor can be computed without repeating it.
        (tensor,) = data_inputs(node)
        finding = self.finding(tensor)
        dtype = tf.as_dtype(attribute(node, "out_type").type or tf.int32.as_datatype_enum)
        multiples = self.multiples(len(finding.shape or ()), finding.axis)
        if dtype is not tf.int32:
            name = self.emit.name("expand", "multiples_cast")
            multiples = self.emit.add("Cast", name, [multiples], SrcT=tf.int32, DstT=dtype)
        name = self.emit.name("item", node.name)
        self.emit.add("Mul", name, [self.once(f"{node.name}:0"), multiples], T=dtype)

    def _nodes_computed_again(self, graph: FlatGraph, outputs: Sequence[str]) -> set[str]:
        # User-side nodes whose outputs are needed at N rows but are neither row-like nor constant.
        again: set[str] = set()

        def read(tensors: Sequence[str]) -> None:
            for tensor in tensors:
                if self.side(tensor) == USER and self.finding(tensor).kind is RowKind.OTHER:
                    again.add(producer(tensor))

        read(outputs)
        for name, node in reversed(graph.nodes.items()):
            if self._colours.of[name] == PAIR or name in again:
                read(data_inputs(node))
        return again
