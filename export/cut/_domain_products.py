"""Products over columns of several domains become one for each, so that a domain's is its state.

x @ K is x_item @ K[item rows] + x_shop @ K[shop rows] + x_rest @ K[other rows]. It is done where
the part that is kept is no larger than the columns that it replaces. Between columns and product
there may be what treats every column by itself with parameters of its own, as batch normalisation
does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from colcast.export.graph._colours import FREE, PAIR, USER, Colours
from colcast.export.graph._emitter import Emitter, lie_together
from colcast.export.graph._flat_graph import FlatGraph, NodeDef, attribute, data_inputs, producer

_OF_COLUMNS = ("Mul", "AddV2", "Add", "Sub", "RealDiv")
_MOST_CONSTANT_BYTES = 64 << 20  # of kernels whose rows interleave, laid out anew


@dataclass
class _Part:
    """One domain's columns of a Concat: tensors, and where their columns are.

    `changed_by` are the ops between Concat and product, first to last, each with its parameters.
    """

    tensors: list[str] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    changed_by: list[tuple[NodeDef, str]] = field(default_factory=list)


def split_products(
    graph: FlatGraph, colours: Colours, session: tf.compat.v1.Session, prefix: str
) -> Emitter:
    """Rewrites products in a graph.

    Args:
        graph: the late signature's nodes; changed in place. New nodes stand before what reads them.
        colours: of each before that.
        session: has the graph.
        prefix: of new nodes' names.

    Returns:
        The new nodes.
    """
    emit = Emitter(prefix)
    rewritten: dict[str, NodeDef] = {}
    for name, node in graph.nodes.items():
        before = set(emit.nodes)
        parts = _parts(graph, colours, session, node)
        total = _write(emit, session, node, parts) if parts else None
        rewritten |= {new: emit.nodes[new] for new in emit.nodes if new not in before}
        rewritten[name] = total or node
    graph.nodes = rewritten
    return emit


def _parts(
    graph: FlatGraph, colours: Colours, session: tf.compat.v1.Session, node: NodeDef
) -> dict[str, _Part] | None:
    """The columns of each domain, where a product of several is worth splitting."""
    if node.op != "MatMul" or attribute(node, "transpose_a").b or attribute(node, "transpose_b").b:
        return None
    columns, kernel = data_inputs(node)
    joined, changed_by = _changed_by(graph, colours, session, columns)
    concat = graph.nodes[producer(joined)]
    if colours.of[node.name] != PAIR or colours[kernel] != FREE:
        return None
    if concat.op != "ConcatV2" or session.graph.get_tensor_by_name(columns).shape.rank != 2:
        return None
    widths = {
        tensor: session.graph.get_tensor_by_name(tensor).shape[-1]
        for tensor in data_inputs(concat)[:-1]
    }
    shape = session.graph.get_tensor_by_name(kernel).shape
    if None in widths.values() or not shape.is_fully_defined():
        return None
    tensors = data_inputs(concat)[:-1]
    sizes = {session.graph.get_tensor_by_name(p).shape.num_elements() for _, p in changed_by}
    if {sum(widths[tensor] for tensor in tensors), *sizes} != {shape[0]}:
        return None
    of_domain: dict[str, int] = {}
    for tensor in tensors:
        of_domain[colours[tensor]] = of_domain.get(colours[tensor], 0) + widths[tensor]
    kept = {domain for domain, width in of_domain.items() if width >= shape[1]}
    kept -= {FREE, PAIR, USER}
    parts: dict[str, _Part] = {domain: _Part(changed_by=changed_by) for domain in sorted(kept)}
    start = 0
    for tensor in tensors:
        domain = colours[tensor] if colours[tensor] in kept else PAIR
        part = parts.setdefault(domain, _Part(changed_by=changed_by))
        part.tensors.append(tensor)
        part.columns += range(start, start + widths[tensor])
        start += widths[tensor]
    return parts if kept and len(parts) > 1 else None


def _changed_by(
    graph: FlatGraph, colours: Colours, session: tf.compat.v1.Session, tensor: str
) -> tuple[str, list[tuple[NodeDef, str]]]:
    """What a tensor is before ops that treat each of its columns by itself, and these ops."""
    found: list[tuple[NodeDef, str]] = []
    while (node := graph.nodes[producer(tensor)]).op in _OF_COLUMNS:
        tensor, parameters = data_inputs(node)
        of_columns = session.graph.get_tensor_by_name(parameters).shape.rank == 1
        if colours[parameters] != FREE or not of_columns:
            return f"{node.name}:0", found
        found.insert(0, (node, parameters))
    return tensor, found


def _write(
    emit: Emitter, session: tf.compat.v1.Session, node: NodeDef, parts: Mapping[str, _Part]
) -> NodeDef | None:
    columns, kernel = data_inputs(node)
    dtype = session.graph.get_tensor_by_name(columns).dtype.base_dtype
    kernels = _kernels(emit, session, node.name, kernel, list(parts.values()))
    if not kernels:
        return None
    products = []
    for (domain, part), rows in zip(parts.items(), kernels, strict=True):
        name = emit.name(domain, node.name)
        joined = emit.concat(f"{name}/columns", part.tensors, 1, dtype)
        for number, (changing, parameters) in enumerate(part.changed_by):
            own = _of_columns(emit, f"{name}/parameters_{number}", parameters, part.columns, dtype)
            joined = f"{emit.apply(changing, f'{name}/changed_{number}', [joined, own]).name}:0"
        products.append(f"{emit.apply(node, name, [joined, rows]).name}:0")
    *others, last = products
    so_far = others[0]
    for product in others[1:]:
        so_far = emit.add("AddV2", emit.name("sum", node.name), [so_far, product], T=dtype)
    total = NodeDef(name=node.name, op="AddV2", input=[so_far, last])
    total.attr["T"].type = dtype.as_datatype_enum
    return total


def _of_columns(
    emit: Emitter, name: str, parameters: str, columns: Sequence[int], dtype: tf.DType
) -> str:
    """The parameters of some columns."""
    index = emit.constant(np.array(columns, np.int32))
    return emit.gather(name, parameters, index, dtype, tf.int32)


def _kernels(
    emit: Emitter, session: tf.compat.v1.Session, name: str, kernel: str, parts: Sequence[_Part]
) -> list[str] | None:
    """The kernel's rows for each part: slices, or constants where they interleave."""
    tensor = session.graph.get_tensor_by_name(kernel)
    columns = [np.array(part.columns) for part in parts]
    together = lie_together(columns)
    if not together and tensor.shape.num_elements() * tensor.dtype.size > _MOST_CONSTANT_BYTES:
        return None
    name, value = emit.name("kernel", name), None if together else lambda: session.run(tensor)
    return emit.kernel_rows(name, kernel, columns, tensor.dtype.base_dtype, value)
