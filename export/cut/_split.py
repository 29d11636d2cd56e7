"""Tensors cut in two along their last axis: the user's columns at one row, the others at N.

A Concat of user and item parts is one. Ops that treat each column by itself, batch normalisation
for one, can be applied to both halves, so the cut reaches as far as the next product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.graph._flat_graph import NodeDef, data_inputs
from colcast.export.graph._ops import FOR_EACH_ELEMENT, OF_TWO_ELEMENTS
from colcast.export.graph._requests import Array


@dataclass(frozen=True)
class Split:
    """A tensor at N rows in two halves.

    Attributes:
        user: the user's columns, new tensor [1, ..., columns].
        items: the other columns, new tensor [N, ..., columns].
        user_columns: where the user's columns are in the whole, ascending.
        item_columns: where the others are, ascending.
        rank: the rank of both.
        flattened: the whole has this rank no more: all its dimensions but the last are folded.
    """

    user: str
    items: str
    user_columns: Array
    item_columns: Array
    rank: int
    flattened: bool = False

    @property
    def width(self) -> int:
        """Columns of the whole."""
        return len(self.user_columns) + len(self.item_columns)

    def same_columns(self, other: "Split") -> bool:
        """Whether another tensor is cut at the same places."""
        return (self.rank, self.flattened) == (other.rank, other.flattened) and np.array_equal(
            self.user_columns, other.user_columns
        )


class Splits:
    """The split tensors of a graph, found by following it in its order."""

    def __init__(self, late: LateGraph) -> None:
        """Takes the graph that halves are written to."""
        self._late = late
        self._found: dict[str, Split] = {}

    def get(self, tensor: str) -> Split | None:
        """The halves of a tensor, if it has any."""
        return self._found.get(tensor)

    def follow(self, node: NodeDef) -> None:
        """Finds out whether a node of the item side gives a split tensor."""
        inputs = data_inputs(node)
        split = self.get(inputs[0]) if inputs else None
        found = None
        if node.op == "ConcatV2":
            found = self._cut(node)
        elif node.op in OF_TWO_ELEMENTS and len(inputs) == 2:
            found = self._of_two(node, inputs)
        elif split and node.op in FOR_EACH_ELEMENT:
            found = self._halves(node, split, [split.user], [split.items])
        elif split and self._changes_nothing(node, inputs):
            found = split
        elif split and node.op == "Reshape" and self._keeps_columns(node, split):
            found = replace(split, flattened=True)
        if found:
            self._found[f"{node.name}:0"] = found

    def write_shape(self, node: NodeDef) -> bool:
        """Writes the Shape of a split tensor, so that only it does not need the whole."""
        split = self.get(data_inputs(node)[0]) if node.op == "Shape" else None
        if not split or split.flattened or self._late.dtype(f"{node.name}:0") != tf.int32:
            return False
        emit, name = self._late.emit, self._late.emit.name("split/item", node.name)
        half = emit.shape(f"{name}/half", split.items, self._late.dtype(data_inputs(node)[0]))
        leading = emit.section(f"{name}/leading", half, 0, split.rank - 1)
        width = emit.constant(np.array([split.width], np.int32))
        self._late.replace(f"{node.name}:0", emit.concat(name, [leading, width], 0, tf.int32))
        return True

    def _cut(self, node: NodeDef) -> Split | None:
        late = self._late
        *tensors, axis_tensor = data_inputs(node)
        rank = late.rank(f"{node.name}:0") or 0
        if rank < 2 or late.axis(node, axis_tensor) != rank - 1:
            return None
        pieces = [self.get(tensor) or self._whole(tensor, rank) for tensor in tensors]
        if not all(piece and piece.rank == rank and not piece.flattened for piece in pieces):
            return None
        known = [piece for piece in pieces if piece]
        starts = np.cumsum([0, *(piece.width for piece in known)])
        user = [piece.user for piece in known if piece.user]
        items = [piece.items for piece in known if piece.items]
        if not user or not items:
            return None
        dtype, name, emit = late.dtype(tensors[0]), node.name, late.emit
        placed = list(zip(known, starts, strict=False))
        return Split(
            emit.concat(emit.name("split/user", name), user, rank - 1, dtype),
            emit.concat(emit.name("split/item", name), items, rank - 1, dtype),
            np.concatenate([piece.user_columns + start for piece, start in placed]),
            np.concatenate([piece.item_columns + start for piece, start in placed]),
            rank,
        )

    def _whole(self, tensor: str, rank: int) -> Split | None:
        """A tensor that is not cut: all its columns are one side's."""
        late, none = self._late, np.arange(0)
        width = late.width(tensor)
        if width is None:
            return None
        if late.is_user_row(tensor, rank):
            return Split(late.once(tensor), "", np.arange(width), none, rank)
        if late.is_item_rows(tensor, rank):
            return Split("", late.many(tensor), none, np.arange(width), rank)
        return None

    def _of_two(self, node: NodeDef, inputs: list[str]) -> Split | None:
        one, other = self.get(inputs[0]), self.get(inputs[1])
        if one and other:
            if not one.same_columns(other):
                return None
            return self._halves(node, one, [one.user, other.user], [one.items, other.items])
        split, vector = (one, inputs[1]) if one else (other, inputs[0])
        if not split or split.flattened:
            return None
        parts = self._vector_parts(vector, split)
        if not parts:
            return None
        halves = zip((split.user, split.items), parts, strict=True)
        user, items = ((half, part) if one else (part, half) for half, part in halves)
        return self._halves(node, split, user, items)

    def _vector_parts(self, tensor: str, split: Split) -> tuple[str, str] | None:
        """A vector of weights for the user's and for the other columns; a scalar is for both."""
        if not self._late.is_fixed(tensor):
            return None
        value = self._late.value(tensor)
        if value.ndim > split.rank or value.size not in (1, split.width):
            return None
        if value.size == 1 and split.width > 1:
            return tensor, tensor
        if value.shape[-1:] != (split.width,):
            return None
        columns = (split.user_columns, split.item_columns)
        user, items = (self._late.emit.constant(value.reshape(-1)[part]) for part in columns)
        return user, items

    def _halves(
        self, node: NodeDef, split: Split, user: Sequence[str], items: Sequence[str]
    ) -> Split:
        """What `node` makes of both halves, given its inputs for each."""
        emit = self._late.emit
        done = []
        for side, inputs in (("user", user), ("item", items)):
            added = emit.apply(node, emit.name(f"split/{side}", node.name), inputs)
            done.append(f"{added.name}:0")
        return replace(split, user=done[0], items=done[1])

    def _changes_nothing(self, node: NodeDef, inputs: list[str]) -> bool:
        if node.op != "Transpose" or not self._late.is_fixed(inputs[1]):
            return bool(node.op == "EnsureShape")
        order = self._late.value(inputs[1])
        return bool(np.array_equal(order, np.arange(order.size)))

    def _keeps_columns(self, node: NodeDef, split: Split) -> bool:
        output = f"{node.name}:0"
        return self._late.rank(output) == 2 and self._late.width(output) == split.width
