"""Which ops compute from the user alone: decided by what an op reads, before anything is run."""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from colcast.export.late._flat_graph import FlatGraph, control_inputs, data_inputs, producer
from colcast.export.late._ops import (
    TF1_CONTROL_FLOW,
    has_effect,
    may_fail,
    why_inexact,
    why_pinned,
)


class OpSide(enum.Enum):
    """Where an op of the signature belongs."""

    FREE = "free"  # reads neither user nor items: weights, tables, constants
    USER = "user"  # reads the user and no item: may run at one row
    ITEM = "item"  # runs at N rows


@dataclass
class Sides:
    """The side of every node.

    Attributes:
        of: node name to side.
        from_user: nodes that read a user feature. A node on the user's side that does not is a
            free one which only waits for the user's.
        held: user-only nodes kept on the item side, with the reason.
        unsteady: nodes below a TF1 Switch, Merge or Enter; their tensors may be dead or live in
            a loop's frame, so they cannot be looked at from outside.
        pinned: nodes that are control flow, random or stateful, or read such a one.
        awaited: nodes that it means something to wait for: effects, assertions, branches of TF1
            control flow, and what runs after them.
        late_controls: item-side nodes (assertions, mostly) that user-side nodes waited for; the
            outputs have to wait for them instead.
    """

    of: dict[str, OpSide] = field(default_factory=dict)
    from_user: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    unsteady: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    late_controls: list[str] = field(default_factory=list)


def sort_sides(
    graph: FlatGraph,
    user: Collection[str],
    items: Collection[str],
    held: Mapping[str, str] = MappingProxyType({}),
    *,
    exact: bool = False,
) -> Sides:
    """Sorts the nodes of a graph.

    Args:
        graph: the signature's nodes.
        user: names of the placeholders that a request feeds once.
        items: names of the placeholders of item features.
        held: user placeholders that are to be expanded at once, with the reason.
        exact: whether only ops that give the same bits at any number of rows may run at one.

    Returns:
        The side of each node. An op that is control flow, random or has side effects, and every
        op that reads such a one, is never on the user's side.
    """
    sides = Sides(from_user=set(user))
    from_items, after_effect = set(items), set[str]()
    for name, node in graph.nodes.items():
        sources = {producer(tensor) for tensor in data_inputs(node)}
        every = sources | set(control_inputs(node))
        _spread(name, sources, sides.from_user)
        _spread(name, sources, from_items)
        reason = held.get(name) or why_pinned(node, graph)
        if exact and name in sides.from_user:
            reason = reason or why_inexact(node)
        _spread(name, every, sides.unsteady, start=node.op in TF1_CONTROL_FLOW)
        _spread(name, every, after_effect, start=has_effect(node, graph))
        ordered = name in sides.unsteady or name in after_effect
        _spread(name, every, sides.awaited, start=ordered or may_fail(node, graph))
        _spread(name, sources, sides.pinned, start=ordered or reason is not None)
        if reason and name in sides.from_user and name not in from_items:
            sides.held[name] = reason
        sides.of[name] = _side(name, every, sides, from_items)
        if sides.of[name] is OpSide.USER:
            awaited = [c for c in control_inputs(node) if c in sides.awaited]
            sides.late_controls += [c for c in awaited if sides.of[c] is OpSide.ITEM]
    return sides


def _spread(name: str, sources: set[str], marked: set[str], *, start: bool = False) -> None:
    """Marks a node that starts a mark or has it from an input."""
    if start or not sources.isdisjoint(marked):
        marked.add(name)


def _side(name: str, sources: set[str], sides: Sides, from_items: set[str]) -> OpSide:
    reads_inputs = name in sides.from_user or name in from_items
    all_free = all(sides.of.get(source) is OpSide.FREE for source in sources)
    if not reads_inputs and all_free and name not in sides.unsteady:
        return OpSide.FREE
    if name in from_items or name in sides.pinned:
        return OpSide.ITEM
    return OpSide.USER
