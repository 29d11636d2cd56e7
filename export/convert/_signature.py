"""Adds a columnar signature to a MetaGraphDef: nodes, SignatureDef, defaults and op list."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from colcast.export.convert._copy_nodes import copy_behind_cut, drop_attributes
from colcast.export.convert._features import Feature
from colcast.export.convert._flatten import Inlined, flatten
from colcast.export.convert._parse_cut import ParseCut, find_cut, parses_examples
from colcast.export.convert._parse_op import parsed_tensors, placeholders
from colcast.export.convert._plain_inputs import find_inputs
from colcast.export.convert._sparse_parts import find_parts
from colcast.export.graph._emitter import add_nodes
from colcast.export.graph._errors import ExportError
from colcast.export.graph._impure import Impurity
from colcast.export.graph._nodes import ancestors, canonical, producer
from tensorflow.core.protobuf import meta_graph_pb2

COLUMNAR = "columnar"
_PREDICT = "tensorflow/serving/predict"


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A signature that was added.

    Attributes:
      name: the columnar signature's name.
      source: the signature from which it was made.
      source_input: the source's input for serialized tf.Examples; None if it takes tensors.
      features: the features that it takes.
      nodes_before: number of the source's nodes in the flat graph, parse op included.
      nodes_after: number of the columnar signature's nodes in the flat graph.
      cut: the replaced parse ops, for comparison; None if nothing is parsed.
      context: the context features of an ExampleListWithContext; None if the source takes none.
      impurity: why the answer depends on more than the request and the model's files; None if it
          does not.
      refusing: a node before the parse op that may refuse a batch of tf.Examples; None if there is
          none.
    """

    name: str
    source: str
    source_input: str | None
    features: tuple[Feature, ...]
    nodes_before: int
    nodes_after: int
    cut: "CutGraph | None"
    refusing: str | None = None
    context: tuple[str, ...] | None = None
    impurity: Impurity | None = None


@dataclasses.dataclass(frozen=True)
class CutGraph:
    """A graph with the parse ops and their replacement side by side, without variables.

    Attributes:
      graph_def: the graph.
      serialized: the tensor of serialized tf.Examples.
      columns: tensors to feed by column.
      pairs: what to compare: the feature, a tensor of the parse op, and its replacement.
    """

    graph_def: Any
    serialized: str
    columns: dict[str, str]
    pairs: tuple[tuple[str, str, str], ...]


def add_columnar_signature(meta_graph: Any, source: str, name: str) -> Conversion:
    """Adds a signature that takes columns, made from one that takes tf.Examples.

    If the source takes tensors, the new signature is a copy of it with all calls inlined.

    Args:
      meta_graph: changed in place; nodes are only added, existing ones stay unchanged.
      source: a signature that parses tf.Example, or takes tensors.
      name: the new signature's name and the prefix of its nodes.

    Raises:
      ExportError: the source cannot be converted, for the reason in the message; `meta_graph` is
        then unchanged.
    """
    signature_def = _source_signature(meta_graph, source, name)
    flat = flatten(meta_graph, [info.name for info in signature_def.outputs.values()])
    parses = parses_examples(source, signature_def, flat, meta_graph)
    if parses:
        cut = find_cut(source, signature_def, flat, meta_graph)
    else:
        _refuse_parts(source, find_parts(meta_graph, signature_def, flat.nodes))
        cut = find_inputs(source, signature_def, _nodes(meta_graph))
    features = _with_use(cut, flat)
    replacement = _build_columns(name, features, cut, flat)
    versions = meta_graph.graph_def.versions
    cut_graph = _cut_graph(cut, flat, replacement, versions) if parses else None
    nodes_before = len(flat.nodes)
    outputs = [
        (flat.tensors[canonical(info.name)], info.dtype) for info in signature_def.outputs.values()
    ]
    nodes = copy_behind_cut(name, flat, cut, replacement.tensors, outputs)
    if cut.lists:
        _drop_lists(name, nodes, signature_def.outputs)
    add_nodes(meta_graph, [*replacement.nodes, *nodes])
    meta_graph.signature_def[name].CopyFrom(
        _signature_def(name, signature_def, features, replacement, by_list=cut.lists is not None)
    )
    graph = _nodes(meta_graph)
    return Conversion(
        name=name,
        source=source,
        source_input=next(iter(signature_def.inputs)) if parses else None,
        features=tuple(features),
        nodes_before=nodes_before,
        nodes_after=len(ancestors(graph, [f"{name}/outputs/{i}" for i in range(len(outputs))])),
        cut=cut_graph,
        refusing=cut.refusing,
        context=tuple(dict.fromkeys(cut.context())) if cut.lists else None,
    )


def _refuse_parts(source: str, parts: Mapping[str, str]) -> None:
    if parts:
        roles = "; ".join(f"{name}: {parts[name]}" for name in sorted(parts))
        raise ExportError(
            f"signature {source!r} takes parts of sparse or ragged features, which have no row per"
            f" candidate ({roles}); serve it as it is, which gives TensorFlow Serving's answers, or"
            " save a signature that takes padded lists, or tf.Examples with VarLen or ragged"
            " features, and export that"
        )


def is_by_list(info: Any) -> bool:
    """Whether an output of a signature for lists has one entry per example: [lists, size, ...]."""
    dims = info.tensor_shape.dim
    return len(dims) > 1 and dims[1].size == -1


def _drop_lists(name: str, nodes: list[Any], outputs: Any) -> None:
    """Removes the list dimension: outputs [rows, 1, ...], one list per row, become [rows, ...]."""
    by_name = {node.name: node for node in nodes}
    for index, info in enumerate(outputs.values()):
        if is_by_list(info):
            node = by_name[f"{name}/outputs/{index}"]
            node.op = "Squeeze"
            node.attr["squeeze_dims"].list.i.append(1)


def _nodes(meta_graph: Any) -> dict[str, Any]:
    return {node.name: node for node in meta_graph.graph_def.node}


def new_names(signatures: Sequence[str]) -> list[tuple[str, str]]:
    """The source and the new name of each signature to convert."""
    names: list[tuple[str, str]] = []
    for signature in signatures:
        source, _, name = signature.partition("=")
        names.append((source, name or (f"{COLUMNAR}_{source}" if names else COLUMNAR)))
    return names


def _source_signature(meta_graph: Any, source: str, name: str) -> Any:
    present = {key for key in meta_graph.signature_def if not key.startswith("__")}
    if source not in present:
        found = ", ".join(sorted(present)) or "none"
        raise ExportError(f"no signature {source!r}; the model has {found}")
    another = f"choose another name with --signature {source}=NEW"
    if name in present:
        raise ExportError(f"the model has a signature {name!r} already; {another}")
    if any(node.name.startswith(f"{name}/") for node in meta_graph.graph_def.node):
        raise ExportError(f"the graph has nodes under {name!r} already; {another}")
    signature_def = meta_graph.signature_def[source]
    for key, info in [*signature_def.inputs.items(), *signature_def.outputs.items()]:
        if info.WhichOneof("encoding") != "name":
            raise ExportError(
                f"{key!r} of signature {source!r} is {info.WhichOneof('encoding')}, expected a"
                " dense tensor: a Predict request cannot carry anything else"
            )
    return signature_def


def _with_use(cut: ParseCut, flat: Inlined) -> list[Feature]:
    """The features of a cut, with `used` set if an output needs them."""
    behind = {name: node for name, node in flat.nodes.items() if name not in cut.parse_nodes}
    read = {canonical(r) for node in behind.values() for r in node.input}
    read.update(flat.tensors.values())
    used = {p.feature.name for p in cut.parsed if any(tensor in read for tensor in p.tensors)}
    return [dataclasses.replace(f, used=f.name in used) for f in cut.features()]


@dataclasses.dataclass(frozen=True)
class _Replacement:
    """The replacement of the parse ops.

    Attributes:
      nodes: the new nodes.
      columns: the placeholder of each column.
      tensors: the new tensor for each tensor that it replaces.
    """

    nodes: list[Any]
    columns: dict[str, Any]
    tensors: dict[str, str]


def _build_columns(
    name: str, features: list[Feature], cut: ParseCut, flat: Inlined
) -> _Replacement:
    """Builds placeholders and the parse ops' results in a separate graph; returns its nodes."""
    columns: dict[str, Any] = {}
    tensors: dict[str, str] = {}
    with tf.Graph().as_default() as graph, tf.name_scope(name):
        with tf.name_scope("inputs"):
            for feature in features:
                columns.update(placeholders(feature))
        with tf.name_scope("parsed"):
            made = {f.name: parsed_tensors(f, columns) for f in features}
            for parsed in cut.parsed:
                for before, after in zip(parsed.tensors, made[parsed.feature.name], strict=True):
                    tensors[before] = canonical(after.name)
        if cut.lists or _shape_is_read(cut, flat):
            in_context = cut.context()
            own = next(f for f in features if f.name not in in_context)
            rows = tf.shape(columns[own.columns[-1].name])[:1]
            examples = tf.fill(rows, "", name="serialized")
            tensors.update({node: canonical(examples.name) for node in cut.serialized})
            if cut.lists:
                stand_ins = cut.lists.stand_ins(rows[0], flat.nodes)
                tensors.update({node: canonical(t.name) for node, t in stand_ins.items()})
        stripped = tf.compat.v1.train.export_meta_graph(
            graph=graph, clear_devices=True, strip_default_attrs=True
        )
    for node in stripped.graph_def.node:
        drop_attributes(node)
    return _Replacement(list(stripped.graph_def.node), columns, tensors)


def _shape_is_read(cut: ParseCut, flat: Inlined) -> bool:
    chain = {*cut.serialized, *cut.parse_nodes}
    return any(
        producer(reference) in cut.serialized
        for name, node in flat.nodes.items()
        if name not in chain
        for reference in node.input
        if not reference.startswith("^")
    )


def _cut_graph(cut: ParseCut, flat: Inlined, replacement: _Replacement, versions: Any) -> CutGraph:
    graph_def = tf.compat.v1.GraphDef(versions=versions)
    needed = ancestors(flat.nodes, cut.parse_nodes, controls=False)
    for node in [*(flat.nodes[name] for name in needed), *replacement.nodes]:
        copy = graph_def.node.add()
        copy.CopyFrom(node)
        drop_attributes(copy)
        data = [reference for reference in node.input if not reference.startswith("^")]
        del copy.input[:]
        copy.input.extend(data)
    return CutGraph(
        graph_def=graph_def,
        serialized=f"{cut.serialized[0]}:0",
        columns={name: tensor.name for name, tensor in replacement.columns.items()},
        pairs=tuple(
            (parsed.feature.name, before, replacement.tensors[before])
            for parsed in cut.parsed
            for before in parsed.tensors
        ),
    )


def _signature_def(
    name: str, source: Any, features: list[Feature], replacement: _Replacement, *, by_list: bool
) -> Any:
    signature = meta_graph_pb2.SignatureDef(method_name=_PREDICT)
    for feature in features:
        for column in feature.columns:
            tensor = replacement.columns[column.name]
            signature.inputs[column.name].CopyFrom(
                meta_graph_pb2.TensorInfo(
                    name=tensor.name,
                    dtype=tensor.dtype.as_datatype_enum,
                    tensor_shape=tensor.shape.as_proto(),
                )
            )
        for key, default in feature.defaults().items():
            dtype = tf.dtypes.as_dtype(signature.inputs[key].dtype)
            signature.defaults[key].CopyFrom(tf.make_tensor_proto(default, dtype))
    for key, default in source.defaults.items():
        if key in signature.inputs:
            signature.defaults[key].CopyFrom(default)
    for index, (key, info) in enumerate(source.outputs.items()):
        signature.outputs[key].CopyFrom(info)
        signature.outputs[key].name = f"{name}/outputs/{index}:0"
        if by_list and is_by_list(info):
            del signature.outputs[key].tensor_shape.dim[1]
    return signature
