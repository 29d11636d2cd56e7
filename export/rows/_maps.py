"""Reads functions' nodes, which have fewer attributes than a graph's, and finds loops over rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph, NodeDef, producer
from colcast.export.rows._facts import Axis, Fact, Kind, fixed, has_rows, mixed
from colcast.export.rows._op import Mixes


def in_order(nodes: Sequence[NodeDef]) -> list[NodeDef]:
    """The nodes of a function, inputs first."""
    by_name = {node.name: node for node in nodes}
    sources = {node.name: by_name.keys() & map(producer, node.input) for node in nodes}
    return [by_name[name] for name in TopologicalSorter(sources).static_order()]


def output_counts(node: NodeDef, graph: FlatGraph) -> dict[str, int]:
    """The number of tensors that a node outputs, by output name in its op's definition."""
    counts = {}
    for argument in graph.op_defs.get(node.op).output_arg:
        if argument.number_attr:
            counts[argument.name] = int(node.attr[argument.number_attr].i)
        elif argument.type_list_attr:
            counts[argument.name] = len(node.attr[argument.type_list_attr].list.type)
        else:
            counts[argument.name] = 1
    return counts


def declared(node: NodeDef, number: int) -> Sequence[int | None] | None:
    """The shape of an output as recorded by its node in a function."""
    if node.op == "Const":
        return [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
    if number >= len(shapes) or shapes[number].unknown_rank:
        return None
    return [None if dim.size < 0 else dim.size for dim in shapes[number].dim]


_SAME = ("Identity", "StopGradient")


@dataclass(frozen=True)
class LoopOverRows:
    """A loop whose iteration i reads row i of some lists and writes row i of others.

    Attributes:
        rows: the dimension of the rows.
        counters: positions of the variables that count iterations.
        read: positions of the lists that are read.
        written: positions of the lists that are written.
    """

    rows: Axis
    counters: frozenset[int]
    read: frozenset[int]
    written: frozenset[int]

    def of_one_row(self, variables: Sequence[Fact]) -> list[Fact]:
        """Facts about the variables of one iteration: a row, and its number as a position."""
        made = [fact.changed() for fact in variables]
        for number in self.counters:
            made[number] = Fact(Kind.FIXED, (), refers=self.rows)
        for number in self.read:
            made[number] = fixed(variables[number].axes)
        for number in self.written:
            made[number] = fixed(None)
        return made

    def results(self, variables: Sequence[Fact], after: Sequence[Fact]) -> list[Fact]:
        """The facts of the variables after the last row."""
        lengths = frozenset[str]().union(*(fact.lengths for fact in variables))
        made = list(variables)
        for number in self.counters:
            made[number] = mixed("a loop counts the rows")
        for number in self.written:
            made[number] = self._rows_of(after[number], lengths)
        return made

    def _rows_of(self, fact: Fact, lengths: frozenset[str]) -> Fact:
        if fact.kind is Kind.MIXED:
            return fact
        if fact.kind is not Kind.FIXED or fact.axes is None or has_rows(fact.axes[1:]):
            raise Mixes("a loop over rows writes something other than its row")
        return Fact(Kind.ROWS, (self.rows, *fact.axes[1:]), lengths | fact.lengths)


def find_loop_over_rows(
    condition: Any, body: Any, variables: Sequence[Fact]
) -> LoopOverRows | None:
    """Returns the loop if it is one over rows; None for any other loop.

    Args:
        condition: the FunctionDef that decides whether there is another iteration.
        body: the FunctionDef of an iteration.
        variables: facts about the variables before the first iteration.
    """
    here, end = _Function(condition), _Function(body)
    counters = {n for n in range(len(variables)) if end.is_counter(n)}
    counters = {n for n in counters if variables[n].uniform == 0}
    same = {n for n in range(len(variables)) if end.returned(n) == end.argument(n)}
    limits = here.limits(counters)
    rows = {(variables[n].sizes or (None,))[0] for n in limits & same}
    if not limits or limits - same or len(rows) != 1 or not has_rows(rows):
        return None
    (of_all,) = rows
    lists = {n for n in range(len(variables)) if end.is_list(n)}
    read = {n for n in lists & same if end.is_read_by(n, counters)}
    written = {n for n in lists - same if end.is_written_by(n, counters)}
    rest = set(range(len(variables))) - counters - read - written
    if rest - same or any(variables[n].axes is not None for n in written):
        return None
    if any(variables[n].sizes != (of_all,) for n in written):
        return None
    if any((variables[n].axes or ((),))[0] != of_all for n in read):
        return None
    if not all(_is_fixed(variables[n]) for n in rest - limits):
        return None
    assert of_all is not None
    return LoopOverRows(of_all, frozenset(counters), frozenset(read), frozenset(written))


def _is_fixed(fact: Fact) -> bool:
    if fact.kind is Kind.SIZES:
        return True  # if it is used as a value, Mixes is raised
    return fact.kind is Kind.FIXED and not has_rows(fact.axes or ())


class _Function:
    """Traces where a function's results come from."""

    def __init__(self, function: Any) -> None:
        self._arguments: list[str] = [argument.name for argument in function.signature.input_arg]
        self._types = [argument.type for argument in function.signature.input_arg]
        self._nodes = {node.name: node for node in function.node_def}
        outputs = (argument.name for argument in function.signature.output_arg)
        self._returned = [self._origin(function.ret[name]) for name in outputs]

    def argument(self, number: int) -> str:
        return self._arguments[number]

    def returned(self, number: int) -> str:
        return self._returned[number]

    def is_list(self, number: int) -> bool:
        return bool(self._types[number] == tf.variant.as_datatype_enum)

    def is_counter(self, number: int) -> bool:
        """Whether an iteration adds 1 to a variable."""
        node = self._node(self._returned[number])
        if node is None or node.op not in ("Add", "AddV2"):
            return False
        sources = [self._origin(source) for source in node.input if source[0] != "^"]
        return sources[0] == self.argument(number) and self._constant(sources[1]) == 1

    def limits(self, counters: set[int]) -> set[int]:
        """The variables that end the loop: it continues while every counter is less than them."""
        found, waiting = set[int](), [self._returned[0]]
        while waiting:
            node = self._node(waiting.pop())
            sources = [self._origin(s) for s in node.input if s[0] != "^"] if node else []
            if node is not None and node.op == "LogicalAnd":
                waiting += sources
                continue
            is_limit = node is not None and node.op == "Less" and self._are(sources[:1], counters)
            if not is_limit or sources[1] not in self._arguments:
                return set()
            found.add(self._arguments.index(sources[1]))
        return found

    def is_read_by(self, number: int, counters: set[int]) -> bool:
        """Whether an iteration reads only the list's entry with the iteration's own number."""
        readers = self._readers(number)
        return all(
            node.op == "TensorListGetItem" and self._are([self._origin(node.input[1])], counters)
            for node in readers
        )

    def is_written_by(self, number: int, counters: set[int]) -> bool:
        """Whether an iteration sets only the list's entry with its own number."""
        (node, *others) = self._readers(number) or [None]
        return (
            node is not None
            and not others
            and node.op == "TensorListSetItem"
            and self._origin(node.input[0]) == self.argument(number)
            and self._returned[number] == f"{node.name}:output_handle:0"
            and self._are([self._origin(node.input[1])], counters)
        )

    def _readers(self, number: int) -> list[Any]:
        name = self.argument(number)
        return [
            node
            for node in self._nodes.values()
            if node.op not in _SAME
            and name in [self._origin(source) for source in node.input if source[0] != "^"]
        ]

    def _are(self, tensors: Sequence[str], counters: set[int]) -> bool:
        return all(tensor in {self.argument(n) for n in counters} for tensor in tensors)

    def _constant(self, tensor: str) -> Any:
        node = self._node(tensor)
        return tf.make_ndarray(node.attr["value"].tensor) if node and node.op == "Const" else None

    def _node(self, tensor: str) -> Any:
        return self._nodes.get(tensor.partition(":")[0]) if tensor not in self._arguments else None

    def _origin(self, tensor: str) -> str:
        """The tensor that Identity ops forward to this one, or the tensor itself."""
        node = self._node(tensor)
        while node is not None and node.op in _SAME:
            tensor = node.input[0]
            node = self._node(tensor)
        return tensor
