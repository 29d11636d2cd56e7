"""Applies the rules to a graph, op by op."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import LIST_ROLE, FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._ops import computed_from_weights, is_unsteady
from colcast.export.rows._entries import clamped
from colcast.export.rows._facts import (
    UNSURE,
    Fact,
    Mixes,
    checked,
    dim,
    has_rows,
    lists_in,
    mixed,
    names,
)
from colcast.export.rows._lists import handed_over
from colcast.export.rows._op import RULES, Op, require

_SAME_ENTRIES = ("Identity", "Reshape", "Snapshot", "StopGradient")


class Walk:
    """Facts about every tensor of a graph.

    Attributes:
        facts: by tensor, in the form "node:port".
    """

    def __init__(
        self, graph: FlatGraph, session: tf.compat.v1.Session, given: Mapping[str, Fact]
    ) -> None:
        """Walks the graph.

        Args:
            graph: the nodes.
            session: a session with the nodes.
            given: facts about the inputs, by tensor. `of="counts:f"` marks the column with the
                lengths of list feature f.
        """
        self.facts: dict[str, Fact] = dict(given)
        self._graph, self._session = graph, session
        roles = {tensor: fact.role for tensor, fact in given.items()}
        self._counts = {name: producer(t) for t, (role, name) in roles.items() if role == "counts"}
        self._known: set[str] = set()  # tensors with the same numbers in every run
        self._origins: dict[str, str] = {}
        weights = computed_from_weights(graph)
        for name, node in graph.nodes.items():
            if f"{name}:0" in given:
                continue
            sources = data_inputs(node)
            unsteady = node.op not in RULES and is_unsteady(node, graph)
            operation = session.graph.get_operation_by_name(name)
            steady = node.op != "Placeholder" and not unsteady and name not in weights
            if steady and self._known.issuperset(sources):
                self._known.update(tensor.name for tensor in operation.outputs)
            made = self._made(node, operation, sources, unsteady)
            for tensor, fact in zip(operation.outputs, made, strict=True):
                self.facts[tensor.name] = fact
            if node.op in _SAME_ENTRIES:
                self._origins[f"{name}:0"] = self._origins.get(sources[0], sources[0])

    def _made(
        self, node: NodeDef, operation: Any, sources: Sequence[str], unsteady: bool
    ) -> list[Fact]:
        ins = [self.facts.get(s, mixed(f"{s} is read before it is known")) for s in sources]
        origins = [self._origins.get(source, source) for source in sources]
        op = Op(operation, ins, lambda index: self._value(ins[index], sources[index]), origins)
        try:
            require(not unsteady, "its output differs between runs")
            made = [_named(checked(fact), op) for fact in self._by_class(op, node)]
            ranks = [tensor.shape.rank for tensor in operation.outputs]
            fits = (
                f.kind == "mixed" or r in (None, len(f.axes))
                for f, r in zip(made, ranks, strict=True)
            )
            require(all(fits), "the rule has its dimensions wrong")
            return made
        except Mixes as error:
            why = str(error)
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            why = f"its inputs do not fit together: {error}"
        return [mixed(f"{why} ({node.op} {node.name})")] * op.outputs

    def _by_class(self, op: Op, node: NodeDef) -> Sequence[Fact]:
        free = all(_is_free(fact) for fact in op.ins) and node.op != "Placeholder"
        declared = self._declared(op) if free else []
        of_sizes = op.type in ("Shape", "ShapeN") or any(fact.kind == "size" for fact in op.ins)
        require(node.op not in ("Merge", "RefMerge"), "rows may decide which branch it takes")
        if declared and op.type not in RULES:
            return declared
        if declared and not of_sizes and all(not names(fact.axes) for fact in declared):
            return declared
        if LIST_ROLE in node.attr and not free:
            return [self._list(node)]
        for fact in op.ins:
            if fact.kind == "mixed":
                return [clamped(op) or replace(fact, sizes=())] * op.outputs
        require(node.op in RULES, "no rule says how this op treats rows")
        try:
            found = RULES[node.op](op)
        except Mixes:
            if not declared:
                raise
            return declared
        return [found] if isinstance(found, Fact) else found

    def _declared(self, op: Op) -> list[Fact]:
        """Facts about outputs that are the same in every run; [] if a rank is unknown."""
        found = list[Fact]()
        for tensor in op.operation.outputs:
            value = None if tensor.shape.is_fully_defined() else self._known_value(tensor.name)
            shape = tensor.shape if value is None else tf.TensorShape(np.shape(value))
            if shape.rank is None:
                return []
            each = enumerate(shape)
            sizes = [(f"?{tensor.name}/{n}",) if m is None else dim(m) for n, m in each]
            found.append(Fact("fixed", tuple(sizes)))
        return found

    def _list(self, node: NodeDef) -> Fact:
        """What the converter hands over about a tensor that it made from a list's columns."""
        role, _, name = node.attr[LIST_ROLE].s.decode().partition(":")
        made = name in self._counts and self._reads(node, self._counts[name])
        require(made, f"list {name} is not made from its columns")
        return handed_over(role, name)

    def _reads(self, node: NodeDef, counts: str) -> bool:
        """Whether only the column `counts`, as the converter reads it, decides a node's output."""
        waiting = [*data_inputs(node)]
        while waiting:
            source = self._graph.nodes[producer(waiting.pop())]
            if source.op in _CONVERTERS:
                waiting += data_inputs(source)[: 1 if source.op in _REPEATED else None]
            elif source.op != "Placeholder" or source.name != counts:
                return False
        return True

    def _value(self, fact: Fact, tensor: str) -> Any:
        """The numbers of a tensor that are the same in every run; None of others."""
        if fact.kind == "size":
            known = not names(fact.sizes) and None not in fact.sizes
            return [(*(each or ()), 1)[0] for each in fact.sizes] if known else None
        found = tf.get_static_value(self._session.graph.get_tensor_by_name(tensor))
        return self._known_value(tensor) if found is None else found

    def _known_value(self, tensor: str) -> Any:
        """The numbers of a tensor that neither inputs nor weights affect; None of others."""
        try:
            return self._session.run(tensor) if tensor in self._known else None
        except (tf.errors.OpError, TypeError, ValueError):
            return None


# What the converter writes for a list, and what a late graph writes to repeat it for each row.
_REPEATED = ("BroadcastTo", "Mul", "Tile")
_CONVERTERS = (
    "Cast", "ConcatV2", "Const", "Cumsum", "EnsureShape", "ExpandDims", "Identity", "Less", "Max",
    "Maximum", "Range", "Reshape", "Shape", *_REPEATED,
)  # fmt: skip


def _named(fact: Fact, op: Op) -> Fact:
    """Adds the op that combines two lists to the doubt whether they are equally long."""
    said = (f"{pad} ({op.type} {op.name})" if pad.endswith(UNSURE) else pad for pad in fact.pads)
    return replace(fact, pads=frozenset(said)) if fact.pads else fact


def _is_free(fact: Fact) -> bool:
    """Whether a tensor has the same size and values in every run."""
    if fact.kind == "size":
        return not has_rows(*fact.sizes) and not lists_in(fact.sizes)
    return fact.kind == "fixed" and not fact.pads and not lists_in(fact.axes)
