"""The split product: what the user's columns add to a product with weights is computed once.

x @ K is x_user @ K[user rows] + x_item @ K[item rows], and the first term is the same on every row.
"""

from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._split import Split, Splits
from colcast.export.graph._emitter import lie_together
from colcast.export.graph._flat_graph import NodeDef, attribute, data_inputs
from colcast.export.graph._requests import Array


@dataclass(frozen=True)
class Product:
    """A tensor at N rows that is the sum of two.

    Attributes:
        user: new tensor [1, ..., units].
        items: new tensor [N, ..., units].
        rank: the rank of both.
        units: the size of the last dimension.
        unfolded: where all dimensions but the last are folded into one: the tensor with the user's
            columns before that, [1, ..., columns]. Then `user` is [..., units] and `items`
            [N x ..., units].
    """

    user: str
    items: str
    rank: int
    units: int
    unfolded: str = ""


class Products:
    """The split products of a graph.

    Attributes:
        names: the nodes whose products were split.
        refused: nodes whose products could be, but were not, with the reason.
    """

    def __init__(self, late: LateGraph, splits: Splits, most_constant_bytes: int) -> None:
        """Takes the split tensors, and how many bytes of kernels may be laid out anew."""
        self._late = late
        self._splits = splits
        self._bytes_left = most_constant_bytes
        self._found: dict[str, Product] = {}
        self.names: list[str] = []
        self.refused: dict[str, str] = {}

    def write(self, node: NodeDef) -> bool:
        """Writes a node of the item side if split tensors are all it needs; False if not."""
        self._splits.follow(node)
        return self._splits.write_shape(node) or self._write_product(node)

    def _write_product(self, node: NodeDef) -> bool:
        inputs = data_inputs(node)
        product = None
        if node.op in ("MatMul", "BatchMatMulV2"):
            product = self._multiplied(node, inputs)
        elif node.op == "Sum":
            product = self._added_up(node, inputs)
        elif node.op in ("Add", "AddV2", "BiasAdd"):
            product = self._with_bias(node, inputs)
        elif node.op == "Reshape" and inputs[0] in self._found:
            product = self._unfolded(node, self._found[inputs[0]], inputs[1])
        if product is None:
            return False
        self._found[f"{node.name}:0"] = product
        self._late.replace(f"{node.name}:0", self._total(node, product))
        return True

    def _multiplied(self, node: NodeDef, inputs: list[str]) -> Product | None:
        split = self._splits.get(inputs[0])
        flat = node.op == "MatMul"
        if not split or not self._late.is_fixed(inputs[1]):
            return None
        if flat != (split.flattened or split.rank == 2) or attribute(node, "transpose_a").b:
            return None
        if attribute(node, "adj_x").b:
            return None
        transposed = attribute(node, "transpose_b").b or attribute(node, "adj_y").b
        kernels = self._kernels(node, inputs[1], split, transposed)
        if not kernels:
            return None
        halves = []
        for side, half, kernel in zip(
            ("user", "item"), (split.user, split.items), kernels[:2], strict=True
        ):
            name = self._late.emit.name(f"split/{side}", f"{node.name}/product")
            columns = self._folded(name, half, node, split) if split.flattened else half
            added = self._late.emit.apply(node, name, [columns, kernel])
            for key in ("transpose_b", "adj_y"):
                if key in added.attr:
                    added.attr[key].b = False
            halves.append(f"{added.name}:0")
        self.names.append(node.name)
        unfolded = split.user if split.flattened else ""
        return Product(halves[0], halves[1], split.rank, kernels[2], unfolded)

    def _folded(self, name: str, half: str, node: NodeDef, split: Split) -> str:
        columns = split.user_columns if half == split.user else split.item_columns
        shape = self._late.emit.constant(np.array([-1, len(columns)], np.int32))
        kinds = {"T": self._late.dtype(f"{node.name}:0"), "Tshape": tf.int32}
        return self._late.emit.add("Reshape", f"{name}/rows", [half, shape], **kinds)

    def _kernels(
        self, node: NodeDef, kernel: str, split: Split, transposed: bool
    ) -> tuple[str, str, int] | None:
        """The kernel's rows for the user's and for the other columns, and its units."""
        late = self._late
        shape = late.static_shape(kernel)
        if len(shape) != 2 or shape[1 if transposed else 0] != split.width:
            return None
        units = shape[0 if transposed else 1]
        columns = (split.user_columns, split.item_columns)
        dtype = late.dtype(kernel)
        together = not transposed and lie_together(columns)
        size = shape[0] * shape[1] * dtype.size
        if not together and size > self._bytes_left:
            self.refused[node.name] = (
                f"its kernel's user and item rows interleave, and {size} bytes are more than the"
                f" {self._bytes_left} left for kernels laid out anew"
            )
            return None
        self._bytes_left -= 0 if together else size

        def value() -> Array:
            return late.value(kernel).T if transposed else late.value(kernel)

        name = late.emit.name("split", f"kernel/{node.name}")
        user, items = late.emit.kernel_rows(
            name, kernel, columns, dtype, None if together else value
        )
        return user, items, units

    def _added_up(self, node: NodeDef, inputs: list[str]) -> Product | None:
        split, late = self._splits.get(inputs[0]), self._late
        if not split or split.flattened or not late.is_fixed(inputs[1]):
            return None
        axes = late.value(inputs[1]).reshape(-1) % split.rank
        if axes.tolist() != [split.rank - 1]:
            return None
        halves = []
        for side, half in (("user", split.user), ("item", split.items)):
            name = late.emit.name(f"split/{side}", f"{node.name}/sum")
            added = late.emit.apply(node, name, [half, inputs[1]])
            halves.append(f"{added.name}:0")
        self.names.append(node.name)
        rank = split.rank if attribute(node, "keep_dims").b else split.rank - 1
        return Product(halves[0], halves[1], rank, units=1)

    def _with_bias(self, node: NodeDef, inputs: list[str]) -> Product | None:
        first = inputs[0] in self._found
        tensor, bias = inputs if first else reversed(inputs)
        product = self._found.get(tensor)
        if not product or not self._late.is_fixed(bias):
            return None
        shape = self._late.static_shape(bias)
        if len(shape) > (2 if product.unfolded else product.rank) or any(
            size != 1 for size in shape[:-1]
        ):
            return None
        if shape[-1:] not in ((), (1,), (product.units,)):
            return None
        name = self._late.emit.name("split/user", f"{node.name}/bias")
        addends = [product.user, bias] if first else [bias, product.user]
        added = self._late.emit.apply(node, name, addends)
        return replace(product, user=f"{added.name}:0")

    def _unfolded(self, node: NodeDef, product: Product, shape: str) -> Product | None:
        late, emit, output = self._late, self._late.emit, f"{node.name}:0"
        if not product.unfolded or product.rank != 3:
            return None
        if (late.rank(output), late.width(output)) != (3, product.units):
            return None
        dtype = late.dtype(output)
        user = emit.name("split/user", f"{node.name}/unfolded")
        whole = emit.shape(f"{user}/shape", product.unfolded, dtype)
        leading = emit.section(f"{user}/leading", whole, 0, 2)
        units = emit.constant(np.array([product.units], np.int32))
        target = emit.concat(f"{user}/target", [leading, units], 0, tf.int32)
        kinds = {"T": dtype, "Tshape": tf.int32}
        items = emit.name("split/item", f"{node.name}/unfolded")
        added = emit.apply(node, items, [product.items, late.many(shape)])
        return Product(
            emit.add("Reshape", user, [product.user, target], **kinds),
            f"{added.name}:0",
            product.rank,
            product.units,
        )

    def _total(self, node: NodeDef, product: Product) -> str:
        late, dtype = self._late, self._late.dtype(f"{node.name}:0")
        user, name = product.user, late.emit.name("split/item", f"{node.name}/total")
        if product.rank == 2 and product.units > 1:
            # As a bias, because TensorFlow fuses MatMul, BiasAdd and activation into one op.
            flat = late.emit.constant(np.array([-1], np.int32))
            kinds = {"T": dtype, "Tshape": tf.int32}
            vector = late.emit.add("Reshape", f"{name}/user", [user, flat], **kinds)
            return late.emit.add("BiasAdd", name, [product.items, vector], T=dtype)
        if product.unfolded:
            user = late.expand(user, 2, dtype)
        return late.emit.add("AddV2", name, [product.items, user], T=dtype)
