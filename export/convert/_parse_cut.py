"""Finds where a signature parses tf.Example: its serialized input, parse ops and features."""

import dataclasses
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Feature
from colcast.export.convert._flatten import Inlined
from colcast.export.convert._lists import FORWARDING_OPS, SHAPE_OPS, Lists, find_lists
from colcast.export.convert._parse_op import PARSE_OPS, ParsedFeature, read_parse_op
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import called_functions, consumers, producer

# Forwarding ops that keep the shape.
_UNCHANGED_OPS = ("Identity", "StopGradient", "Snapshot")
_OTHER_PARSE_OPS = (
    "ParseSingleExample",
    "ParseSequenceExample",
    "ParseSequenceExampleV2",
    "ParseSingleSequenceExample",
    "DecodeJSONExample",
)


@dataclasses.dataclass(frozen=True)
class ParseCut:
    """The cut in a flat graph: serialized tf.Examples before it, tensors after it.

    Attributes:
      serialized: the nodes that hold serialized tf.Examples, from the input to the parse ops; empty
        if the signature takes tensors.
      parse_nodes: names of the parse ops, or of the placeholders if it takes tensors.
      parsed: the features of each parse op; a feature may appear in several ops.
      refusing: a node between the input and a parse op that may refuse a batch of tf.Examples; None
        if there is none.
      lists: where tf.Examples are decoded from ExampleListWithContexts; None if the input holds
        tf.Examples.
    """

    serialized: list[str]
    parse_nodes: list[str]
    parsed: list[ParsedFeature]
    refusing: str | None = None
    lists: Lists | None = None

    def context(self) -> list[str]:
        """The names of features parsed from the context of a list."""
        of_context = set(self.lists.parse_nodes["context"]) if self.lists else set()
        return [p.feature.name for p in self.parsed if producer(p.tensors[0]) in of_context]

    def features(self) -> list[Feature]:
        """The features, each once, in the order in which they are parsed."""
        return list({parsed.feature.name: parsed.feature for parsed in self.parsed}.values())


def find_cut(signature: str, signature_def: Any, flat: Inlined, meta_graph: Any) -> ParseCut:
    """Finds where the flat graph of a signature parses tf.Example.

    Raises:
      ExportError: there is nothing to cut, or another op reads the serialized tf.Examples.
    """
    parse_nodes = [name for name, node in flat.nodes.items() if node.op in PARSE_OPS]
    lists = find_lists(flat, parse_nodes, signature)
    roots = [lists.decode] if lists else parse_nodes
    sources = {node: _source(flat, node) for node in roots}
    name, info = _serialized_input(signature, signature_def, sources)
    shape = info.tensor_shape
    if not shape.unknown_rank and len(shape.dim) != 1:
        raise ExportError(
            f"input {name!r} of signature {signature!r} holds"
            f" {'one tf.Example' if not shape.dim else f'a rank-{len(shape.dim)} tensor'}, expected"
            " a vector of serialized tf.Examples, one per row; export the model with a batched"
            " input"
        )
    serialized = _serialized_chain(flat, producer(info.name), signature, lists)
    for output, tensor in flat.tensors.items():
        if producer(tensor) in serialized:
            raise ExportError(
                f"output {output!r} of signature {signature!r} returns the serialized"
                " tf.Examples, which a columnar request does not have; remove it from the model"
            )
    parsed = [
        feature
        for node in parse_nodes
        for feature in read_parse_op(flat.nodes[node], flat.nodes, meta_graph.graph_def.versions)
    ]
    check_features(parsed)
    refusing = None if lists else _refusing(flat, serialized)
    cut = ParseCut(serialized, parse_nodes, parsed, refusing, lists)
    _check_sides(cut, signature)
    return cut


def _check_sides(cut: ParseCut, signature: str) -> None:
    context = set(cut.context())
    names = [p.feature.name for p in cut.parsed]
    both = sorted(name for name in context if names.count(name) > cut.context().count(name))
    if both:
        raise ExportError(
            f"feature {both[0]!r} of signature {signature!r} is parsed from the context and from"
            " the examples of a list; rename one of the two in the model"
        )


def _source(flat: Inlined, parse_node: str) -> str:
    """The node that produces the serialized input of a parse op."""
    name = producer(flat.nodes[parse_node].input[0])
    while flat.nodes[name].op in FORWARDING_OPS:
        name = producer(flat.nodes[name].input[0])
    return name


def _serialized_input(
    signature: str, signature_def: Any, sources: dict[str, str]
) -> tuple[str, Any]:
    inputs = {producer(info.name): (name, info) for name, info in signature_def.inputs.items()}
    found = set(sources.values())
    for node, source in sources.items():
        if source not in inputs:
            raise ExportError(
                f"parse op {node!r} behind signature {signature!r} reads {source!r}, not an"
                f" input of the signature (its inputs: {_quoted(signature_def.inputs)}); columns"
                " can replace tf.Examples only if they are parsed as received"
            )
    if len(found) > 1:
        raise ExportError(
            f"signature {signature!r} parses {len(found)} inputs"
            f" ({_quoted(inputs[source][0] for source in found)}); one is supported"
        )
    name, info = inputs[found.pop()]
    extra = [other for other in signature_def.inputs if other != name]
    if extra:
        raise ExportError(
            f"signature {signature!r} takes {_quoted(extra)} in addition to the tf.Examples in"
            f" {name!r}; only signatures with a single input are supported"
        )
    return name, info


def _serialized_chain(
    flat: Inlined, placeholder: str, signature: str, lists: Lists | None
) -> list[str]:
    """The nodes that forward the serialized input; ExportError if any other kind of op reads it."""
    reading = consumers(flat.nodes)
    chain = [placeholder]
    taken_apart = [lists.decode, *lists.strings] if lists else []
    for name in chain:
        for reader in reading[name]:
            node = flat.nodes[reader]
            if reader in taken_apart:
                continue
            if node.op in PARSE_OPS or node.op in SHAPE_OPS or f"^{name}" in node.input:
                continue
            if node.op not in FORWARDING_OPS or producer(node.input[0]) != name:
                raise ExportError(
                    f"node {reader!r} ({node.op}) behind signature {signature!r} reads the"
                    " serialized tf.Examples, which a columnar request does not have"
                    f"{_per_example(node.op)}"
                )
            chain.append(reader)
    returned = [tensor for tensor in flat.tensors.values() if producer(tensor) in chain]
    if returned:
        raise ExportError(
            f"signature {signature!r} returns its serialized tf.Examples ({returned[0]!r}), which"
            " a columnar request does not have"
        )
    return [*chain, *taken_apart]


def _refusing(flat: Inlined, serialized: list[str]) -> str | None:
    """The first node that changes the shape of the serialized tf.Examples."""
    for name in serialized[1:]:
        if flat.nodes[name].op not in _UNCHANGED_OPS:
            return f"{name} ({flat.nodes[name].op})"
    return None


def _per_example(op: str) -> str:
    if op in ("While", "StatelessWhile", "TensorListFromTensor", "TensorArrayScatterV3"):
        return (
            "; it looks like tf.io.parse_single_example under tf.map_fn: parse the whole batch"
            " with tf.io.parse_example instead"
        )
    return ""


def check_features(parsed: list[ParsedFeature]) -> None:
    seen: dict[str, Feature] = {}
    for feature in (p.feature for p in parsed):
        other = seen.setdefault(feature.name, feature)
        if other != feature:
            raise ExportError(
                f"feature {feature.name!r} is parsed in two ways: {other.describe()} with default"
                f" {other.default} and {feature.describe()} with default {feature.default}"
            )
    owners: dict[str, str] = {}
    for feature in seen.values():
        for column in feature.columns:
            if column.name in owners:
                raise ExportError(
                    f"column {column.name!r} of feature {feature.name!r} has the name of a column"
                    f" of feature {owners[column.name]!r}; rename one of the two in the model"
                )
            owners[column.name] = feature.name


def parses_examples(signature: str, signature_def: Any, flat: Inlined, meta_graph: Any) -> bool:
    """Whether a signature parses tf.Example; False if it takes tensors.

    Raises:
      ExportError: it parses something else, or parses inside a loop.
    """
    if any(node.op in PARSE_OPS for node in flat.nodes.values()):
        return True
    if reason := _parses_otherwise(signature, signature_def, flat, meta_graph):
        raise ExportError(reason)
    return False


def _parses_otherwise(
    signature: str, signature_def: Any, flat: Inlined, meta_graph: Any
) -> str | None:
    inputs = ", ".join(
        f"{name!r} ({_dtype_name(info.dtype)})" for name, info in signature_def.inputs.items()
    )
    message = f"signature {signature!r} has no ParseExample op behind its inputs {inputs or 'none'}"
    ops = {node.op for node in flat.nodes.values()}
    others = sorted(ops & set(_OTHER_PARSE_OPS))
    if others:
        return f"{message}; it has {', '.join(others)}, which parses something else"
    functions = {
        function.signature.name: function for function in meta_graph.graph_def.library.function
    }
    for name in sorted(called_functions(flat.nodes.values(), functions)):
        parsing = [n for n in functions[name].node_def if n.op in (*PARSE_OPS, *_OTHER_PARSE_OPS)]
        if parsing:
            return (
                f"{message} but one in function {name!r} of a loop or branch ({parsing[0].op}):"
                " tf.io.parse_single_example under tf.map_fn, it seems; parse the whole batch with"
                " tf.io.parse_example instead"
            )
    return None


def _dtype_name(dtype: int) -> str:
    return str(tf.dtypes.as_dtype(dtype).name)


def _quoted(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))
