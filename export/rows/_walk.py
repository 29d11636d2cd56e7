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
    R,
    checked,
    count,
    declared,
    has_rows,
    lists_in,
    names,
    require,
)
from colcast.export.rows._lists import handed_over
from colcast.export.rows._op import RULES, Op

# What the converter writes for a list, and what a late graph writes to repeat it for each row.
_REPEATED = ("BroadcastTo", "Mul", "Tile")
_CONVERTERS = (
    "Cast", "ConcatV2", "Const", "Cumsum", "EnsureShape", "ExpandDims", "Identity", "Less", "Max",
    "Maximum", "Range", "Reshape", "Shape", *_REPEATED,
)  # fmt: skip


class Walk:
    """Facts about every tensor of a graph.

    Attributes:
        facts: by tensor, in the form "node:port".
    """

    def __init__(
        self, graph: FlatGraph, session: tf.compat.v1.Session, given: Mapping[str, Fact]
    ) -> None:
        """Walks the graph, whose nodes the session has, from facts about its inputs.

        In `given`, `of="counts:f"` marks the column with the lengths of list feature f, and
        `of="counts:?f"` a state of it.
        """
        self.facts: dict[str, Fact] = dict(given)
        self._nodes, self._session = graph.nodes, session
        self._known: set[str] = set()  # tensors with the same numbers in every run
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
            self.facts |= zip((tensor.name for tensor in operation.outputs), made, strict=True)

    def _counted(self, tensor: str) -> set[str]:
        """The lists whose lengths decide a tensor; also "" if ops other than an exporter's do."""
        fact, node = self.facts[tensor], self._nodes[producer(tensor)]
        role, name = fact.role
        if role == "counts" or fact.sizes == (R,):
            return {name} if role else set()
        sources = data_inputs(node)
        of_rows = fact.kind == "rows" and node.op == "GatherV2"
        if node.op in _REPEATED or (of_rows and self.facts[sources[1]].kind == "ids"):
            sources = sources[:1]
        elif node.op not in _CONVERTERS:
            return {""}
        return set().union(*map(self._counted, sources))

    def _made(
        self, node: NodeDef, operation: Any, sources: Sequence[str], unsteady: bool
    ) -> list[Fact]:
        unknown = Fact("mixed", why="it reads what a later op of a loop makes")
        ins = [self.facts.get(source, unknown) for source in sources]
        op = Op(node.name, node.op, operation, ins, lambda index: self._value(sources[index]))
        try:
            require(not unsteady, "its output differs between runs")
            made = [_named(checked(fact), op) for fact in self._by_class(op, node, sources)]
            for fact, tensor in zip(made, operation.outputs, strict=True):
                fits = fact.kind == "mixed" or tensor.shape.rank in (None, len(fact.axes))
                require(fits, "the rule has its dimensions wrong")
            return made
        except Mixes as error:
            why = str(error)
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            why = f"its inputs do not fit together: {error}"
        return [Fact("mixed", why=f"{why} ({op.type} {op.name})")] * len(operation.outputs)

    def _by_class(self, op: Op, node: NodeDef, sources: Sequence[str]) -> Sequence[Fact]:
        require(node.op not in ("Merge", "RefMerge"), "rows may decide which branch it takes")
        free = all(_is_free(fact) for fact in op.ins) and node.op != "Placeholder"
        shapes = self._declared(op) if free else []
        of_sizes = op.type in ("Shape", "ShapeN") or any(fact.kind == "size" for fact in op.ins)
        if shapes and (op.type not in RULES or not of_sizes):
            return shapes
        if LIST_ROLE in node.attr and not free:
            role, _, name = node.attr[LIST_ROLE].s.decode().partition(":")
            counted = set[str]().union(*map(self._counted, sources))
            of_columns = counted in ({name}, {f"?{name}"})
            require(of_columns, f"list {name} is not made from its columns")
            return [handed_over(role, *counted)]
        for fact in op.ins:
            if fact.kind == "mixed":
                return [clamped(op) or replace(fact, sizes=())] * len(op.operation.outputs)
        require(node.op in RULES, "no rule says how this op treats rows")
        try:
            found = RULES[node.op](op)
        except Mixes:
            if not shapes:
                raise
            return shapes
        return [found] if isinstance(found, Fact) else found

    def _declared(self, op: Op) -> list[Fact]:
        """Facts about outputs that are the same in every run; [] if a rank is unknown."""
        found = list[Fact]()
        for tensor in op.operation.outputs:
            value = None if tensor.shape.is_fully_defined() else self._value(tensor.name)
            shape = tensor.shape if value is None else tf.TensorShape(np.shape(value))
            if shape.rank is None:
                return []
            found.append(declared(shape, tensor.name))
        return found

    def _value(self, tensor: str) -> Any:
        """The numbers of a tensor that neither inputs nor weights affect; None of others."""
        fact = self.facts.get(tensor)
        if fact and fact.kind == "size":
            known = not names(fact.sizes) and None not in fact.sizes
            return [count(each or ()) for each in fact.sizes] if known else None
        found = tf.get_static_value(self._session.graph.get_tensor_by_name(tensor))
        try:
            return self._session.run(tensor) if found is None and tensor in self._known else found
        except (tf.errors.OpError, TypeError, ValueError):
            return None


def _named(fact: Fact, op: Op) -> Fact:
    """Adds the op that combines two lists to the doubt whether they are equally long."""
    said = (f"{pad} ({op.type} {op.name})" if pad.endswith(UNSURE) else pad for pad in fact.pads)
    return replace(fact, pads=frozenset(said)) if fact.pads else fact


def _is_free(fact: Fact) -> bool:
    """Whether a tensor has the same size and values in every run."""
    sizes = fact.sizes if fact.kind == "size" else fact.axes
    return fact.kind in ("fixed", "size") and not (fact.pads or has_rows(*sizes) or lists_in(sizes))
