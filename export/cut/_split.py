"""Tensors at N rows whose columns, along the last axis, belong to several domains.

An example is the Concat of user and item columns. Ops that treat each column separately, such as
batch normalisation, can be applied to each domain's columns, so a tensor stays split up to the next
product.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.graph._colours import PAIR, USER
from colcast.export.graph._nodes import NodeDef, data_inputs, producer
from colcast.export.graph._ops import FOR_EACH_ELEMENT, OF_TWO_ELEMENTS
from colcast.export.graph._sessions import Array


@dataclass(frozen=True)
class Split:
    """A tensor whose columns belong to several domains, and the node that computes it.

    Attributes:
        node: a Concat, or an op that treats each column separately.
        operands: the node's inputs except the axis. Each is a split tensor, a tensor of one domain,
            or fixed (a scalar, or a vector with one element per column).
        domains: the domain of each column, [columns].
        rank: the number of dimensions.
        flattened: whether all dimensions but the last have been folded into one; `rank` is still
            the number before that.
    """

    node: NodeDef
    operands: tuple["Split | str", ...]
    domains: Array
    rank: int
    flattened: bool = False

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.domains)

    def columns(self, domains: Collection[str]) -> Array:
        """The positions of some domains' columns, ascending."""
        return np.flatnonzero(np.isin(self.domains, list(domains)))

    def same_columns(self, other: "Split") -> bool:
        """Whether another tensor has the same columns in the same domains."""
        return (self.rank, self.flattened) == (other.rank, other.flattened) and np.array_equal(
            self.domains, other.domains
        )


class Splits:
    """Finds the split tensors of a graph, whose nodes `follow` takes in order."""

    def __init__(self, late: LateGraph) -> None:
        """Prepares to write columns to `late`."""
        self._late = late
        self._found: dict[str, Split] = {}
        self._written: dict[tuple[str, tuple[str, ...]], str] = {}

    def get(self, tensor: str) -> Split | None:
        """The tensor's columns by domain; None if the tensor is not split."""
        return self._found.get(tensor)

    def follow(self, node: NodeDef) -> None:
        """Records the output of an item-side node if it is a split tensor."""
        inputs = data_inputs(node)
        split = self.get(inputs[0]) if inputs else None
        found = None
        if node.op == "ConcatV2":
            found = self._joined(node)
        elif node.op in OF_TWO_ELEMENTS and len(inputs) == 2:
            found = self._of_two(node, inputs)
        elif split and node.op in FOR_EACH_ELEMENT:
            found = replace(split, node=node, operands=(split,))
        elif split and self._changes_nothing(node, inputs):
            found = split
        elif split and node.op == "Reshape" and self._keeps_columns(node, split):
            found = replace(split, flattened=True)
        if found:
            self._found[f"{node.name}:0"] = found

    def part(self, split: Split, domains: Collection[str]) -> str:
        """Writes the columns of some domains, the user's at one row; returns the new tensor."""
        key = split.node.name, tuple(sorted(domains))
        if key not in self._written:
            self._written[key] = self._write(split, domains)
        return self._written[key]

    def write_shape(self, node: NodeDef) -> bool:
        """Writes the Shape of a split tensor without computing the unsplit tensor for it.

        Returns whether `node` is such a Shape.
        """
        split = self.get(data_inputs(node)[0]) if node.op == "Shape" else None
        if not split or split.flattened or self._late.dtype(f"{node.name}:0") != tf.int32:
            return False
        emit, name = self._late.emit, self._late.emit.name("split/item", node.name)
        part = self.part(split, [next(domain for domain in split.domains if domain != USER)])
        shape = emit.shape(f"{name}/half", part, self._late.dtype(data_inputs(node)[0]))
        leading = emit.section(f"{name}/leading", shape, 0, split.rank - 1)
        width = emit.constant(np.array([split.width], np.int32))
        self._late.replace(f"{node.name}:0", emit.concat(name, [leading, width], 0, tf.int32))
        return True

    def _joined(self, node: NodeDef) -> Split | None:
        late = self._late
        *tensors, axis_tensor = data_inputs(node)
        rank = late.rank(f"{node.name}:0") or 0
        if rank < 2 or late.axis(node, axis_tensor) != rank - 1:
            return None
        operands = [self.get(tensor) or tensor for tensor in tensors]
        domains = [of for operand in operands if (of := self._domains(operand, rank)) is not None]
        if len(domains) < len(operands) or len({*(columns := np.concatenate(domains))}) < 2:
            return None
        return Split(node, tuple(operands), columns, rank)

    def _domains(self, operand: Split | str, rank: int) -> Array | None:
        if isinstance(operand, Split):
            return operand.domains if (operand.rank, operand.flattened) == (rank, False) else None
        late, width = self._late, self._late.width(operand)
        has_rows = late.is_user_row(operand, rank) or late.is_item_rows(operand, rank)
        return np.full(width, late.domain(operand), object) if has_rows and width else None

    def _of_two(self, node: NodeDef, inputs: list[str]) -> Split | None:
        operands = tuple(self.get(tensor) or tensor for tensor in inputs)
        splits = [operand for operand in operands if isinstance(operand, Split)]
        if not splits or not splits[0].same_columns(splits[-1]):
            return None
        split, fixed = splits[0], [operand for operand in operands if isinstance(operand, str)]
        if fixed and (split.flattened or not self._is_of_columns(fixed[0], split)):
            return None
        return replace(split, node=node, operands=operands)

    def _is_of_columns(self, tensor: str, split: Split) -> bool:
        """Whether a tensor is fixed: a scalar, or a vector with one element per column."""
        if not self._late.is_fixed(tensor):
            return False
        shape = self._late.static_shape(tensor)
        size = int(np.prod(shape))
        if len(shape) > split.rank or size not in (1, split.width):
            return False
        return size == 1 < split.width or shape[-1:] == (split.width,)

    def _write(self, split: Split, domains: Collection[str]) -> str:
        late, node = self._late, split.node
        name = late.emit.name(f"split/{name_of(domains)}", node.name)
        if node.op == "ConcatV2":
            tensors = [t for operand in split.operands if (t := self._own(operand, domains))]
            dtype = late.dtype(f"{node.name}:0")
            return late.emit.concat(name, tensors, split.rank - 1, dtype)
        columns = split.columns(domains)
        inputs = [
            self.part(operand, domains)
            if isinstance(operand, Split)
            else self._of_columns(operand, columns, split)
            for operand in split.operands
        ]
        return f"{late.emit.apply(node, name, inputs).name}:0"

    def _own(self, operand: Split | str, domains: Collection[str]) -> str:
        """The columns of one Concat operand that belong to these domains; "" if it has none."""
        if isinstance(operand, Split):
            return self.part(operand, domains) if len(operand.columns(domains)) else ""
        late = self._late
        if (domain := late.domain(operand)) not in domains:
            return ""
        return late.once(operand) if domain == USER else late.many(operand)

    def _of_columns(self, tensor: str, columns: Array, split: Split) -> str:
        """The elements of a fixed vector for some columns; a scalar applies to all columns."""
        late = self._late
        shape = late.static_shape(tensor)
        if np.prod(shape) == 1 < split.width:
            return tensor
        if late.is_constant(tensor):
            return late.emit.constant(late.value(tensor).reshape(-1)[columns])
        dtype, name = late.dtype(tensor), late.emit.name("split/of_columns", producer(tensor))
        if len(shape) > 1:
            flat = late.emit.constant(np.array([-1], np.int32))
            kinds = {"T": dtype, "Tshape": tf.int32}
            tensor = late.emit.add("Reshape", f"{name}/flat", [tensor, flat], **kinds)
        index = late.emit.constant(columns.astype(np.int32))
        return late.emit.gather(name, tensor, index, dtype, tf.int32)

    def _changes_nothing(self, node: NodeDef, inputs: list[str]) -> bool:
        if node.op != "Transpose" or not self._late.is_constant(inputs[1]):
            return bool(node.op == "EnsureShape")
        order = self._late.value(inputs[1])
        return bool(np.array_equal(order, np.arange(order.size)))

    def _keeps_columns(self, node: NodeDef, split: Split) -> bool:
        output = f"{node.name}:0"
        return self._late.rank(output) == 2 and self._late.width(output) == split.width


def name_of(domains: Collection[str]) -> str:
    """The name used for new nodes of these domains' columns."""
    return next(iter(domains)) if len(domains) == 1 else PAIR
