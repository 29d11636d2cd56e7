"""Colours ops by the domains whose columns they read, without running them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from colcast.export.graph._nodes import FlatGraph, NodeDef, control_inputs, data_inputs, producer
from colcast.export.graph._ops import (
    TF1_CONTROL_FLOW,
    has_effect,
    may_fail,
    why_inexact,
    why_pinned,
)

FREE = "free"  # reads no column (weights, tables, constants), so all domains share it
PAIR = "pair"  # runs for each candidate
USER = "user"
ITEM = "item"


@dataclass
class Colours:
    """The colour of every node, with the facts that decided it.

    Attributes:
        of: node name to FREE, a domain, or PAIR. A node is PAIR if it reads columns of several
            domains, is control flow, is random, has side effects, or reads a PAIR node.
        reads: node name to the domains whose columns the node reads.
        waiting: nodes that read no column but have a control input from a node that reads one.
        held: nodes that are PAIR although they read only user columns, with the reason.
        unsteady: nodes after a TF1 Switch, Merge or Enter, whose tensors cannot be fetched because
            they may be dead or belong to a loop's frame.
        pinned: nodes that are control flow, random or stateful, or read such a node.
        awaited: nodes that must run before others: effects, assertions, branches of TF1 control
            flow, and nodes that run after these.
        late_controls: nodes (mostly assertions) that a node of another colour waited for; the
            outputs wait for them instead.
    """

    of: dict[str, str] = field(default_factory=dict)
    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    unsteady: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    late_controls: list[str] = field(default_factory=list)

    def __getitem__(self, tensor: str) -> str:
        """The colour of the op that computes a tensor."""
        return self.of[producer(tensor)]


def colour(
    graph: FlatGraph,
    columns: Mapping[str, Iterable[str]],
    held: Mapping[str, str] = MappingProxyType({}),
    *,
    waiting: str = PAIR,
    exact: bool = False,
) -> Colours:
    """Colours the nodes of a graph.

    Args:
        graph: the nodes.
        columns: placeholder tensors by domain; columns without a domain are under PAIR.
        held: user placeholders that must be PAIR, with the reason.
        waiting: the colour for the nodes in `Colours.waiting`.
        exact: make ops that read user columns PAIR unless they compute the same bits for any number
            of rows.
    """
    found = Colours()
    domains = {producer(tensor): {domain} for domain, of in columns.items() for tensor in of}
    after_effect = set[str]()
    for name, node in graph.nodes.items():
        sources = {producer(tensor) for tensor in data_inputs(node)}
        every = sources | set(control_inputs(node))
        reads = frozenset(domains.get(name, ())).union(
            *(found.reads[source] for source in sources if source in found.reads)
        )
        found.reads[name] = reads
        reason = held.get(name) or why_pinned(node, graph)
        if exact and USER in reads:
            reason = reason or why_inexact(node)
        _spread(name, every, found.unsteady, start=node.op in TF1_CONTROL_FLOW)
        _spread(name, every, after_effect, start=has_effect(node, graph))
        ordered = name in found.unsteady or name in after_effect
        _spread(name, every, found.awaited, start=ordered or may_fail(node, graph))
        _spread(name, sources, found.pinned, start=ordered or reason is not None)
        if reason and reads == {USER}:
            found.held[name] = reason
        found.of[name] = _colour(name, every, found, waiting)
        found.late_controls += _late_controls(node, found)
    return found


def _spread(name: str, sources: set[str], marked: set[str], *, start: bool = False) -> None:
    """Marks a node if `start`, or if one of its inputs is marked."""
    if start or not sources.isdisjoint(marked):
        marked.add(name)


def _colour(name: str, sources: set[str], found: Colours, waiting: str) -> str:
    reads = found.reads[name]
    all_free = all(found.of.get(source) == FREE for source in sources)
    if not reads and all_free and name not in found.unsteady:
        return FREE
    if name in found.pinned or len(reads) > 1:
        return PAIR
    if not reads:
        found.waiting.add(name)
        return waiting
    return next(iter(reads))


def _late_controls(node: NodeDef, found: Colours) -> list[str]:
    """The control inputs that a node drops; the outputs will wait for them instead.

    Only a node that belongs to a stage, or a waiting node, drops control inputs.
    """
    own = found.of[node.name]
    if own == FREE or (own == PAIR and node.name not in found.waiting):
        return []
    return [
        source
        for source in control_inputs(node)
        if source in found.awaited
        and source not in found.waiting
        and found.of[source] != FREE
        and (own == PAIR or found.of[source] != own)
    ]
