"""Facts about a node's outputs, from its rule or its functions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph, NodeDef, called_functions, data_inputs
from colcast.export.graph._ops import is_random
from colcast.export.rows import (  # noqa: F401
    _control,
    _elements,
    _lists,
    _lookups,
    _matrices,
    _shapes,
    _slices,
    _stacks,
    _sums,
)
from colcast.export.rows._control import MERGES
from colcast.export.rows._facts import Axis, Fact, Kind, fixed, has_open, join, labels, mixed
from colcast.export.rows._free import free_fact, is_of_no_run
from colcast.export.rows._maps import declared, find_loop_over_rows, in_order, output_counts
from colcast.export.rows._numbers import with_numbers
from colcast.export.rows._op import RULES, Mixes, Op, checked
from colcast.export.rows._trials import OF_SHAPES

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_LOOPS = ("While", "StatelessWhile")
_ROUNDS = 12  # facts about a loop's variables usually settle after two or three

_GIVE_NOTHING = {"Assert", "NoOp"}

WALKED = {
    *_CALLS,
    *_BRANCHES,
    *_LOOPS,
    *_GIVE_NOTHING,
    "Placeholder",
    "ReadVariableOp",
    "VarHandleOp",
}
"""Ops that need no rule: functions are followed, variables are fixed, checks have no results."""

Sizes = Sequence[int | None] | None


class Nodes:
    """Applies the rules to the nodes of a graph and its functions."""

    def __init__(self, graph: FlatGraph, compute: Callable[[NodeDef, Sequence[Any]], Any]) -> None:
        """Prepares to walk a graph; `compute` runs a node on one entry of each input."""
        self._graph = graph
        self._compute = compute
        self._defaults = cache(self._find_defaults)

    def result(
        self,
        node: NodeDef,
        inputs: Sequence[Fact],
        value_of: Callable[[int], Any],
        shapes: Sequence[Sizes],
        of_one_row: Callable[[int], Any] = lambda _: None,
    ) -> list[Fact]:
        """Facts about a node's outputs, from facts about its inputs."""
        if node.op in _GIVE_NOTHING:
            return []
        meets = [fact for fact in inputs if fact.kind is Kind.MIXED]
        if meets:
            return [bounded(node.op, inputs, value_of, meets[0])] * len(shapes)
        own = {name: value for name, value in node.attr.items() if value.WhichOneof("value")}
        attributes = {**self._defaults(node.op), **own}
        op = Op(
            node.name,
            node.op,
            inputs,
            attributes,
            len(shapes),
            data_inputs(node),
            value_of,
            lambda values: self._compute(node, values),
            shapes.__getitem__,
            of_one_row,
        )
        try:
            made = self._made(op, node, inputs, shapes)
        except Mixes as error:
            refused = mixed(f"{node.op} ({node.name}): {error}")
            return [bounded(node.op, inputs, value_of, refused)] * len(shapes)
        sizes_vary = any(has_open(each) for fact in inputs for each in fact.axes or ())
        if node.op not in OF_SHAPES or sizes_vary:
            lengths = frozenset[str]().union(*(fact.lengths for fact in inputs))
            made = [replace(fact, lengths=fact.lengths | lengths) for fact in made]
        return [checked(node.name, node.op, fact) for fact in made]

    def _find_defaults(self, op: str) -> dict[str, Any]:
        return {
            each.name: each.default_value
            for each in self._graph.op_defs.get(op).attr
            if each.HasField("default_value")
        }

    def _made(
        self, op: Op, node: NodeDef, inputs: Sequence[Fact], shapes: Sequence[Any]
    ) -> list[Fact]:
        if is_random(node.op) and any(not is_of_no_run(fact) for fact in inputs):
            raise Mixes("random numbers are drawn for all rows together")
        if node.op in _CALLS or node.op in self._graph.library:
            name = node.attr["f"].func.name if node.op in _CALLS else node.op
            return self._call(name, inputs)
        if node.op in _BRANCHES:
            return self._branches(node, inputs)
        if node.op in _LOOPS:
            return self._loop(node, list(inputs))
        if node.op == "VarHandleOp":
            shape = tf.TensorShape(node.attr["shape"].shape)
            return [free_fact(node, 0, sizes_of(shape))]  # the fact of the tensor read from it
        if node.op == "ReadVariableOp":
            return [inputs[0]]
        if node.op not in _FOLLOWED and all(map(is_of_no_run, inputs)):
            return self._free_facts(op, node, shapes)
        if node.op not in RULES:
            raise Mixes("no rule says how this op treats rows")
        return _by_rule(op)

    def _free_facts(self, op: Op, node: NodeDef, shapes: Sequence[Any]) -> list[Fact]:
        """Facts about tensors that are the same in every run."""
        made = [free_fact(node, number, shape) for number, shape in enumerate(shapes)]
        unknown = [fact.axes is None or bool(labels(fact.axes)) for fact in made]
        sized = any(fact.kind is Kind.SIZES for fact in op.inputs)
        if node.op not in RULES or not (sized or any(unknown)):
            return made
        try:
            followed = _by_rule(op)
        except Mixes:
            return made
        chosen = zip(made, followed, unknown, strict=True)
        return [b if sized or more else a for a, b, more in chosen]

    def _branches(self, node: NodeDef, inputs: Sequence[Fact]) -> list[Fact]:
        lengths = _control.check_condition(inputs[0])
        if "branches" in node.attr:
            names = [function.name for function in node.attr["branches"].list.func]
        else:
            names = [node.attr[way].func.name for way in ("then_branch", "else_branch")]
        ways = [self._call(name, inputs[1:]) for name in names]
        made = ways[0]
        for way in ways[1:]:
            made = [join(one, other) for one, other in zip(made, way, strict=True)]
        return [replace(fact, lengths=fact.lengths | lengths) for fact in made]

    def _loop(self, node: NodeDef, variables: list[Fact]) -> list[Fact]:
        condition, body = (node.attr[name].func.name for name in ("cond", "body"))
        functions = (self._graph.library[condition], self._graph.library[body])
        by_row = find_loop_over_rows(*functions, variables)
        if by_row is not None and not self._has_random(functions[1]):
            return by_row.results(variables, self._call(body, by_row.of_one_row(variables)))
        variables = [fact.changed() if fact.kind is Kind.FIXED else fact for fact in variables]
        for _ in range(_ROUNDS):
            (again,) = self._call(condition, variables)
            if again.kind is Kind.MIXED:
                raise Mixes(f"its condition: {again.why}")
            trips = _control.check_condition(again)
            after = [replace(f, lengths=f.lengths | trips) for f in self._call(body, variables)]
            settled = [join(one, other) for one, other in zip(variables, after, strict=True)]
            meets = [fact for fact in settled if fact.kind is Kind.MIXED]
            if settled == variables or len(meets) == len(settled):
                return settled
            variables = settled
        raise Mixes("the facts about a loop's variables do not settle")

    def _has_random(self, function: Any) -> bool:
        """Whether a function draws random numbers, directly or through a call."""
        library = self._graph.library
        called = [library[name] for name in called_functions(function.node_def, library)]
        return any(is_random(node.op) for each in (function, *called) for node in each.node_def)

    def _call(self, name: str, inputs: Sequence[Fact]) -> list[Fact]:
        """Facts about a function's results."""
        function = self._graph.library[name]
        facts: dict[str, Fact] = {
            argument.name: fact
            for argument, fact in zip(function.signature.input_arg, inputs, strict=True)
        }
        values: dict[str, Any] = {}
        for node in in_order(function.node_def):
            sources = [source for source in node.input if not source.startswith("^")]
            given = [facts[source] for source in sources]
            if node.op in MERGES:
                given = [mixed(f"{node.name} ({node.op}): a TensorFlow 1 branch in a function")]

            def value_of(index: int, sources: Sequence[str] = sources, given: Any = given) -> Any:
                return values.get(sources[index], given[index].value)

            counts = output_counts(node, self._graph)
            flat: list[Fact] = self.result(
                node, given, value_of, [declared(node, n) for n in range(sum(counts.values()))]
            )
            for output, count in counts.items():
                for number in range(count):
                    facts[f"{node.name}:{output}:{number}"] = flat.pop(0)
            if node.op == "Const":
                values[f"{node.name}:output:0"] = tf.make_ndarray(node.attr["value"].tensor)
        returned = [function.ret[argument.name] for argument in function.signature.output_arg]
        return [facts[tensor] for tensor in returned]


_FOLLOWED = {
    "EmptyTensorList", "Identity", "Shape", "ShapeN", "Size", "TensorListReserve",
    "TensorListSetItem", "TensorListStack",
}  # fmt: skip
"""Ops whose rule is applied even if no row affects their inputs, for a more precise fact."""


def _by_rule(op: Op) -> list[Fact]:
    try:
        found = RULES[op.type](op)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        # mostly inputs that TensorFlow refuses
        raise Mixes(f"its inputs do not fit together ({error})") from error
    made = [found] if isinstance(found, Fact) else list(found)
    return [with_numbers(op, fact) for fact in made]


def sizes_of(shape: tf.TensorShape) -> Sizes:
    """The dimensions of a shape, None for an unknown one; None if the rank is unknown."""
    return None if shape.rank is None else shape.as_list()


# Bounds of numbers that all rows contribute to. `tf.math.bincount` needs them: the largest value
# determines the number of counts, unless its minimum and maximum length do.
_ONE: Axis = ()
_TRUTHS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")


def bounded(op: str, inputs: Sequence[Fact], value_of: Callable[[int], Any], refused: Fact) -> Fact:
    """The fact of an op that mixes rows: `refused` with bounds, or a number if bounds imply one."""
    first, refused = inputs[0], mixed(refused.why)
    if op in _TRUTHS:
        return replace(refused, most=_ONE)
    if op in ("Cast", "Identity"):
        return replace(refused, most=first.most, below=first.below, least=first.least)
    if op == "Max" and first.refers is not None:
        return replace(refused, most=first.refers, below=True)
    if op == "Mul" and _ONE in (most := [fact.most for fact in inputs]) and None not in most:
        return replace(refused, most=most[1 - most.index(_ONE)])
    return _beside_a_number(op, inputs, value_of, refused)


def _beside_a_number(
    op: str, inputs: Sequence[Fact], value_of: Callable[[int], Any], refused: Fact
) -> Fact:
    for index in (0, 1) if op in ("Add", "AddV2", "Maximum", "Minimum") else ():
        one, other = inputs[index], inputs[1 - index]
        if one.kind is Kind.MIXED or one.axes != ():
            continue
        if op == "Maximum" and one.sizes is not None and one.sizes == (other.most,):
            return one
        value = value_of(index)
        if value is None or np.asarray(value).dtype.kind != "i":
            continue
        if op == "Maximum":
            return replace(refused, least=float(value))
        if op == "Minimum" and other.least is not None and other.least >= value:
            return fixed((), np.asarray(value))
        if op in ("Add", "AddV2") and other.below and value <= 1:
            return replace(refused, most=other.most)
    return refused
