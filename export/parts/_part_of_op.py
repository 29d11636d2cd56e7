"""Whose part an op of the late signature is: decided by what it reads."""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from colcast.export.late._flat_graph import FlatGraph, producer
from colcast.export.late._sides import OpSide, Sides, sort_sides


class Part(enum.Enum):
    """A part of a model."""

    FREE = "free"  # weights, tables, constants: shared by all
    USER = "user"
    ITEM = "item"
    PAIR = "pair"


@dataclass(frozen=True)
class PartSides:
    """The part of every node.

    Attributes:
        of: node name to part.
        user: the sides with the user as late expansion sees them.
        items: the same with the roles exchanged: its user side is the items'.
    """

    of: dict[str, Part]
    user: Sides
    items: Sides

    def part(self, tensor: str) -> Part:
        """The part of the op that makes the tensor."""
        return self.of[producer(tensor)]

    @property
    def late_controls(self) -> list[str]:
        """Nodes that one of another part waits for: the outputs have to wait instead."""
        return list(dict.fromkeys([*self.user.late_controls, *self.items.late_controls]))

    def awaited(self, node: str) -> bool:
        """Whether it means something to wait for a node: effects and assertions."""
        return node in self.user.awaited


def sort_parts(
    graph: FlatGraph, user: Collection[str], items: Collection[str], context: Collection[str]
) -> PartSides:
    """Sorts the nodes of a late signature's graph.

    Args:
        graph: the nodes.
        user: names of the user's placeholders.
        items: names of the items'.
        context: names of those that belong to neither.
    """
    of_user = sort_sides(graph, user=user, items=[*items, *context])
    of_items = sort_sides(graph, user=items, items=[*user, *context])
    found = {}
    for name in graph.nodes:
        sides = (of_user.of[name], of_items.of[name])
        if sides == (OpSide.FREE, OpSide.FREE):
            found[name] = Part.FREE
        elif sides == (OpSide.USER, OpSide.ITEM):
            found[name] = Part.USER
        elif sides == (OpSide.ITEM, OpSide.USER):
            found[name] = Part.ITEM
        else:
            found[name] = Part.PAIR
    return PartSides(found, of_user, of_items)
