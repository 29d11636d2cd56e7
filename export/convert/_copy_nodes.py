"""Copies the nodes after a cut so that they read columns instead of parsed tf.Examples."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from colcast.export.convert._flatten import Inlined
from colcast.export.convert._parse_cut import ParseCut
from colcast.export.graph._nodes import (
    NOT_COPIED,
    ancestors,
    canonical,
    consumers,
    descendants,
    producer,
    rewire,
)


def copy_behind_cut(
    name: str,
    flat: Inlined,
    cut: ParseCut,
    replaced: Mapping[str, str],
    outputs: list[tuple[str, int]],
) -> list[Any]:
    """Returns copies of the nodes after the cut, and an Identity for each output.

    Nodes of the MetaGraph that do not depend on the tf.Examples (variables, tables, constants) are
    shared, not copied. The outputs wait for the nodes that function calls run only for effects.

    Args:
      name: the prefix of the new names; outputs are `name/outputs/0` and so on.
      flat: the graph to cut.
      cut: where to cut it.
      replaced: maps each tensor before the cut to the tensor that replaces it.
      outputs: tensors of `flat` with their DataType numbers.
    """
    front = {*cut.serialized, *cut.parse_nodes}
    moved = (descendants(consumers(flat.nodes), front) | flat.inlined) - front
    frames = _frames(flat, moved)
    moved |= {node for frame in frames.values() for node in frame}

    def rename(reference: str) -> str | None:
        control = reference.startswith("^")
        if producer(reference) in front:
            return None if control else replaced[canonical(reference)]
        if producer(reference) in moved:
            return f"^{name}/{reference[1:]}" if control else f"{name}/{reference}"
        return reference

    effects = [f"^{effect}" for effect in flat.effects if effect not in front]
    ends = [
        _identity(f"{name}/outputs/{index}", dtype, [tensor, *effects])
        for index, (tensor, dtype) in enumerate(outputs)
    ]
    everything = {**flat.nodes, **{end.name: end for end in ends}}
    copied = moved & ancestors(everything, [end.name for end in ends], stop=front)
    nodes = [node for node_name, node in flat.nodes.items() if node_name in copied]
    for node in nodes:
        node.name = f"{name}/{node.name}"
        drop_attributes(node)
        if node.op in ("Enter", "RefEnter"):
            node.attr["frame_name"].s = f"{name}/".encode() + node.attr["frame_name"].s
    for node in [*nodes, *ends]:
        rewire(node, rename)
    return [*nodes, *ends]


def drop_attributes(node: Any) -> None:
    """Drops attributes that a copied or new node must not have: colocation and recorded shapes."""
    for attribute in NOT_COPIED:
        if attribute in node.attr:
            del node.attr[attribute]


def _frames(flat: Inlined, moved: set[str]) -> dict[bytes, set[str]]:
    """The nodes of TensorFlow 1 loops that contain a moved node, since loops move as a whole."""
    enters: dict[bytes, list[str]] = {}
    for name, node in flat.nodes.items():
        if node.op in ("Enter", "RefEnter"):
            enters.setdefault(node.attr["frame_name"].s, []).append(name)
    inside = {name: node for name, node in flat.nodes.items() if node.op not in ("Exit", "RefExit")}
    reading = consumers(inside) if enters else {}
    frames = {frame: {*roots, *descendants(reading, roots)} for frame, roots in enters.items()}
    return {frame: nodes for frame, nodes in frames.items() if nodes & moved}


def _identity(name: str, dtype: int, inputs: list[str]) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Identity", input=inputs)
    node.attr["T"].type = dtype
    return node
