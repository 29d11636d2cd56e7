"""Signatures that decode ExampleListWithContext before the parse ops, like TF-Ranking's.

DecodeProtoV2 splits each list into a serialized context and serialized examples, padded to the
longest list. One parse op reads the contexts, another the examples of all lists. Columns represent
lists of one example each: row i is a context and its only example.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from colcast.export.convert._flatten import Inlined
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import canonical, consumers, output_index, producer

FORWARDING_OPS = ("Identity", "StopGradient", "EnsureShape", "Reshape", "Snapshot")
SHAPE_OPS = ("Shape", "Size", "ZerosLike")
_DECODE_OP = "DecodeProtoV2"
_FIELDS = ("context", "examples")


@dataclasses.dataclass(frozen=True)
class Lists:
    """The nodes that decode serialized lists.

    Attributes:
      decode: the node that decodes them.
      fields: the fields that it extracts, in order: "context" and "examples".
      strings: nodes that forward serialized contexts or examples to the parse ops, with the field
          that each forwards.
      parse_nodes: the parse ops of each field.
    """

    decode: str
    fields: tuple[str, ...]
    strings: Mapping[str, str]
    parse_nodes: Mapping[str, tuple[str, ...]]

    def stand_ins(self, rows: Any, nodes: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors that replace each node's outputs if every list has one example.

        Args:
          rows: the number of lists, a scalar.
          nodes: the flat graph's nodes.
        """
        made = {self.decode: tf.ones([rows, len(self.fields)], tf.int32)}
        for number, _ in enumerate(self.fields, start=1):
            made[f"{self.decode}:{number}"] = tf.fill([rows, 1], "")
        for name in self.strings:
            shape = [rows] if nodes[name].op == "Reshape" else [rows, 1]
            made[name] = tf.fill(shape, "")
        return made


def find_lists(flat: Inlined, parse_nodes: Sequence[str], signature: str) -> Lists | None:
    """Finds the node that decodes ExampleListWithContexts for the parse ops.

    Returns:
      The lists; None if the parse ops read the signature's input directly.

    Raises:
      ExportError: columns cannot represent how the lists are decoded; the message says why.
    """
    found = [name for name, node in flat.nodes.items() if node.op == _DECODE_OP]
    found = [name for name in found if _is_list(flat.nodes[name])]
    if not found:
        return None
    if len(found) > 1:
        raise ExportError(f"signature {signature!r} decodes lists {len(found)} times, expected 1")
    (decode,) = found
    fields = tuple(name.decode() for name in flat.nodes[decode].attr["field_names"].list.s)
    strings = _strings(flat, decode, fields, signature)
    by_field: dict[str, list[str]] = {field: [] for field in _FIELDS}
    for name in parse_nodes:
        source = flat.nodes[name].input[0]
        field = strings.get(producer(source)) or _field_of(source, decode, fields)
        if field is None:
            read = producer(source)
            raise ExportError(
                f"parse op {name!r} behind signature {signature!r} reads {read!r}"
                f" ({flat.nodes[read].op}), expected a list's unchanged context or examples;"
                " if the model pads, truncates (list_size) or shuffles lists, export it without"
                " that"
            )
        by_field[field].append(name)
    if not by_field["examples"]:
        raise ExportError(f"signature {signature!r} parses no examples of its lists")
    return Lists(decode, fields, strings, {f: tuple(names) for f, names in by_field.items()})


def _is_list(node: Any) -> bool:
    return {name.decode() for name in node.attr["field_names"].list.s} == set(_FIELDS)


def _field_of(reference: str, decode: str, fields: Sequence[str]) -> str | None:
    """The field that an output of the decode node holds; None for sizes and for other nodes."""
    index = output_index(canonical(reference))
    return fields[index - 1] if producer(reference) == decode and index > 0 else None


def _strings(flat: Inlined, decode: str, fields: Sequence[str], signature: str) -> dict[str, str]:
    """The nodes that forward serialized contexts or examples, with the field they hold."""
    reading = consumers(flat.nodes)
    forwarding: dict[str, str] = {}
    queue = [decode]
    for name in queue:
        for reader in dict.fromkeys(reading[name]):
            node = flat.nodes[reader]
            read = [r for r in node.input if producer(r) == name and not r.startswith("^")]
            held = [forwarding.get(name) or _field_of(r, decode, fields) for r in read]
            if not any(held) or node.op in SHAPE_OPS or node.op.startswith("ParseExample"):
                continue
            if node.op not in FORWARDING_OPS or producer(node.input[0]) != name:
                raise ExportError(
                    f"node {reader!r} ({node.op}) behind signature {signature!r} reads the"
                    " serialized tf.Examples of a list; if the model pads, truncates (list_size) or"
                    " shuffles lists, export it without that"
                )
            forwarding[reader] = next(filter(None, held))
            queue.append(reader)
    return forwarding
