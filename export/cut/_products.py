"""Splits products, so that each domain's term is computed once per row of the domain.

x @ K is x_user @ K[user rows] + x_item @ K[item rows] + ..., and the first term is the same on
every row. A domain with fewer columns than the product has units is multiplied together with the
candidates' own columns, because its term would be larger than the columns themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import tensorflow as tf
from colcast.export.cut._fused import Fused
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._split import Split, Splits, name_of
from colcast.export.graph._colours import PAIR, USER
from colcast.export.graph._emitter import lies_together
from colcast.export.graph._nodes import NodeDef, attribute, data_inputs
from colcast.export.graph._sessions import Array

# Domains whose columns are multiplied together; the user is always separate.
Group = tuple[str, ...]
_USER: Group = (USER,)
_NOT_FINITE = "NaN or infinite values reach a product with a Relu, which the model makes 0"
_MOST_GATHERED_BYTES = 256 << 20  # bytes of weights that are gathered if kernel rows interleave
_Rows = tuple[str, bool, bytes]  # a kernel, whether it is transposed, and which of its rows


@dataclass(frozen=True)
class Product:
    """A tensor at N rows that is a sum of terms.

    Attributes:
        terms: new tensors, the user's last. The user's is [1, ..., units], others are [N, ...,
            units].
        rank: the rank of all terms.
        units: the size of the last dimension.
        unfolded: if all dimensions but the last are folded into one, the tensors before folding,
            [rows, ..., columns]. The terms are then [rows x ..., units].
    """

    terms: Mapping[Group, str]
    rank: int
    units: int
    unfolded: Mapping[Group, str] = field(default_factory=dict)

    def with_user(self, tensor: str) -> "Product":
        """The same product with another user term."""
        return replace(self, terms={**self.terms, _USER: tensor})


class Products:
    """The split products of a graph.

    Attributes:
        names: the nodes whose products were split.
        refused: nodes whose products could have been split but were not, with the reason.
        kernel_rows: new tensors with some rows of a kernel.
    """

    def __init__(
        self,
        late: LateGraph,
        splits: Splits,
        fused: Fused,
        kernel_rows: Mapping[_Rows, str],
    ) -> None:
        """Prepares to write products.

        Args:
            late: the graph to which products are written.
            splits: tensors split by domain.
            fused: products whose inputs must be finite.
            kernel_rows: kernel rows that were written earlier.
        """
        self._late = late
        self._splits = splits
        self._fused = fused
        self._bytes_left = _MOST_GATHERED_BYTES
        self._found: dict[str, Product] = {}
        self.names: list[str] = []
        self.refused: dict[str, str] = {}
        self.kernel_rows = dict(kernel_rows)

    def write(self, node: NodeDef) -> bool:
        """Writes an item-side node if split tensors suffice to compute it; else returns False."""
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
            product = self._unfolded(node, self._found[inputs[0]])
        if product is None:
            return False
        self._found[f"{node.name}:0"] = product
        self._late.replace(f"{node.name}:0", self._total(node, product))
        return True

    def _groups(self, split: Split, units: int) -> list[Group]:
        """Groups of domains whose columns are multiplied together, the user last."""
        domains = sorted({*split.domains} - {USER})
        large = [d for d in domains if d != PAIR and len(split.columns([d])) >= units]
        small = tuple(d for d in domains if d not in large)
        groups = [*((domain,) for domain in large), *([small] if small else [])]
        return [*groups, *([_USER] if USER in split.domains else [])]

    def _groupings(self, split: Split, units: int) -> list[list[Group]]:
        """The groupings to try: the best one, then the user's columns and all others."""
        others = tuple(sorted({*split.domains} - {USER}))
        best, apart = self._groups(split, units), [others, _USER]
        groupings = [best, apart] if USER in split.domains and best != apart else [best]
        return [groups for groups in groupings if groups[1:]]

    def _multiplied(self, node: NodeDef, inputs: list[str]) -> Product | None:
        split = self._splits.get(inputs[0])
        flat = node.op == "MatMul"
        if not split or not self._late.is_fixed(inputs[1]):
            return None
        if flat != (split.flattened or split.rank == 2) or attribute(node, "transpose_a").b:
            return None
        if attribute(node, "adj_x").b:
            return None
        if why := self._why_whole(node, split):
            self.refused[node.name] = why
            return None
        transposed = attribute(node, "transpose_b").b or attribute(node, "adj_y").b
        shape = self._late.static_shape(inputs[1])
        if len(shape) != 2 or shape[1 if transposed else 0] != split.width:
            return None
        units = shape[0 if transposed else 1]
        for groups in self._groupings(split, units):
            if kernels := self._kernels(node, inputs[1], split, groups, transposed):
                break
        else:
            return None
        terms = {
            group: self._term(node, split, group, kernel)
            for group, kernel in zip(groups, kernels, strict=True)
        }
        self.names.append(node.name)
        if node.name in self._fused.read and not self._late.one_user:
            terms = self._checked(node, terms)
        parts = {group: self._splits.part(split, group) for group in groups}
        return Product(terms, split.rank, units, parts if split.flattened else {})

    def _why_whole(self, node: NodeDef, split: Split) -> str:
        """Why a product that TensorFlow fuses with a Relu stays whole; "" if it may be split."""
        if node.name not in self._fused.read:
            return ""
        if split.flattened:
            return "its Relu would no longer be fused, and would pass NaN on instead of making it 0"
        stays = not self._late.one_user and node.name in self._fused.not_finite
        return f"{_NOT_FINITE}: an empty list's mean, a negative number's logarithm" * stays

    def _term(self, node: NodeDef, split: Split, group: Group, kernel: str) -> str:
        emit, columns = self._late.emit, self._splits.part(split, group)
        name = emit.name(f"split/{name_of(group)}", f"{node.name}/product")
        if split.flattened:
            shape = emit.constant(np.array([-1, len(split.columns(group))], np.int32))
            kinds = {"T": self._late.dtype(f"{node.name}:0"), "Tshape": tf.int32}
            columns = emit.add("Reshape", f"{name}/rows", [columns, shape], **kinds)
        return f"{emit.apply(node, name, [columns, kernel]).name}:0"

    def _kernels(
        self, node: NodeDef, kernel: str, split: Split, groups: list[Group], transposed: bool
    ) -> list[str] | None:
        """The kernel's rows for each group's columns; None if too many bytes would be gathered."""
        columns = [split.columns(group) for group in groups]
        keys = [(kernel, transposed, own.tobytes()) for own in columns]
        missing = {
            key: own for key, own in zip(keys, columns, strict=True) if key not in self.kernel_rows
        }
        if missing and not self._take_rows(node, kernel, missing, transposed):
            return None
        return [self.kernel_rows[key] for key in keys]

    def _take_rows(
        self, node: NodeDef, kernel: str, missing: Mapping[_Rows, Array], transposed: bool
    ) -> bool:
        """Writes rows of a kernel; False if that would gather too many bytes."""
        late = self._late
        dtype, units = late.dtype(kernel), late.static_shape(kernel)[0 if transposed else 1]
        gathered = [own for own in missing.values() if transposed or not lies_together(own)]
        size = sum(map(len, gathered)) * units * dtype.size
        if size > self._bytes_left:
            self.refused[node.name] = (
                f"its kernel's user and item rows interleave, and {size} bytes are more than the"
                f" {self._bytes_left} left for rows that are gathered"
            )
            return False
        self._bytes_left -= size
        name = late.emit.name("split", f"kernel/{node.name}")
        for key, rows in missing.items():
            self.kernel_rows[key] = late.emit.kernel_rows(
                name, kernel, rows, dtype, transposed=transposed
            )
        return True

    def _added_up(self, node: NodeDef, inputs: list[str]) -> Product | None:
        split, late = self._splits.get(inputs[0]), self._late
        if not split or split.flattened or not late.is_constant(inputs[1]):
            return None
        axes = late.value(inputs[1]).reshape(-1) % split.rank
        if axes.tolist() != [split.rank - 1]:
            return None
        terms = {}
        for group in self._groups(split, units=1):
            name = late.emit.name(f"split/{name_of(group)}", f"{node.name}/sum")
            added = late.emit.apply(node, name, [self._splits.part(split, group), inputs[1]])
            terms[group] = f"{added.name}:0"
        self.names.append(node.name)
        rank = split.rank if attribute(node, "keep_dims").b else split.rank - 1
        return Product(terms, rank, units=1)

    def _with_bias(self, node: NodeDef, inputs: list[str]) -> Product | None:
        first = inputs[0] in self._found
        tensor, bias = inputs if first else reversed(inputs)
        product = self._found.get(tensor)
        if not product or _USER not in product.terms or not self._late.is_fixed(bias):
            return None
        shape = self._late.static_shape(bias)
        if len(shape) > (2 if product.unfolded else product.rank) or any(
            size != 1 for size in shape[:-1]
        ):
            return None
        if shape[-1:] not in ((), (1,), (product.units,)):
            return None
        name = self._late.emit.name("split/user", f"{node.name}/bias")
        user = product.terms[_USER]
        added = self._late.emit.apply(node, name, [user, bias] if first else [bias, user])
        return product.with_user(f"{added.name}:0")

    def _checked(self, node: NodeDef, terms: Mapping[Group, str]) -> dict[Group, str]:
        """Adds a check that terms are finite; it reads one unit, as a NaN spreads to all units."""
        emit, dtype = self._late.emit, self._late.dtype(f"{node.name}:0")
        start, size, axes = ([0, 0], [-1, 1], [0, 1])
        checked = {}
        for group, term in terms.items():
            name = emit.name(f"split/{name_of(group)}", f"{node.name}/finite")
            bounds = [emit.constant(np.array(bound, np.int32)) for bound in (start, size)]
            first = emit.add("Slice", name, [term, *bounds], T=dtype, Index=tf.int32)
            finite = emit.add("IsFinite", name, [first], T=dtype)
            over = emit.constant(np.array(axes, np.int32))
            finite = emit.add("All", name, [finite, over], Tidx=tf.int32, keep_dims=False)
            message = emit.constant(np.array(_NOT_FINITE.encode()))
            check = emit.add("Assert", name, [finite, message], summarize=1)
            emit.nodes[check.removesuffix(":0")].attr["T"].list.type.append(
                tf.string.as_datatype_enum
            )
            checked[group] = emit.add(
                "Identity", name, [term, f"^{check}".removesuffix(":0")], T=dtype
            )
        return checked

    def _unfolded(self, node: NodeDef, product: Product) -> Product | None:
        late, emit, output = self._late, self._late.emit, f"{node.name}:0"
        if not product.unfolded or product.rank != 3:
            return None
        if (late.rank(output), late.width(output)) != (3, product.units):
            return None
        kinds = {"T": late.dtype(output), "Tshape": tf.int32}
        units = emit.constant(np.array([product.units], np.int32))
        terms = {}
        for group, term in product.terms.items():
            name = emit.name(f"split/{name_of(group)}", f"{node.name}/unfolded")
            whole = emit.shape(f"{name}/shape", product.unfolded[group], kinds["T"])
            leading = emit.section(f"{name}/leading", whole, 0, 2)
            shape = emit.concat(f"{name}/target", [leading, units], 0, tf.int32)
            terms[group] = emit.add("Reshape", name, [term, shape], **kinds)
        return Product(terms, product.rank, product.units)

    def _total(self, node: NodeDef, product: Product) -> str:
        late, dtype = self._late, self._late.dtype(f"{node.name}:0")
        name = late.emit.name("split/item", f"{node.name}/total")
        user = product.terms.get(_USER)
        first, *others = [term for group, term in product.terms.items() if group != _USER]
        for term in others:
            first = late.emit.add("AddV2", f"{name}/domains", [first, term], T=dtype)
        if user is None:
            return first
        fuses = product.units > 1 or node.name in self._fused.biases
        if product.rank == 2 and fuses and late.one_user and node.name not in self._fused.alone:
            # Added as a bias, because TensorFlow fuses MatMul, BiasAdd and activation.
            flat = late.emit.constant(np.array([-1], np.int32))
            kinds = {"T": dtype, "Tshape": tf.int32}
            vector = late.emit.add("Reshape", f"{name}/user", [user, flat], **kinds)
            return late.emit.add("BiasAdd", name, [first, vector], T=dtype)
        if product.unfolded:
            user = late.expand(user, 2, dtype)
        addends = [first, late.addend(node, user, dtype)]
        return late.emit.add("AddV2", name, addends, T=dtype)
