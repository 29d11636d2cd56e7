"""The colour of an op: the domain whose columns it reads, decided before anything is run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from colcast.export.graph._flat_graph import (
    FlatGraph,
    NodeDef,
    control_inputs,
    data_inputs,
    producer,
)
from colcast.export.graph._ops import (
    TF1_CONTROL_FLOW,
    has_effect,
    may_fail,
    why_inexact,
    why_pinned,
)

FREE = "free"  # reads no column: weights, tables, constants; shared by all
PAIR = "pair"  # runs for each candidate
USER = "user"
ITEM = "item"


@dataclass
class Colours:
    """The colour of every node, and what it follows from.

    Attributes:
        of: node name to FREE, a domain, or PAIR: what reads columns of several domains, and what
            is control flow, random or has side effects, or reads such a node.
        reads: node name to the domains whose columns it reads.
        waiting: nodes that read no column, but wait for what does.
        held: nodes that read the user alone but are PAIR, with the reason.
        unsteady: nodes below a TF1 Switch, Merge or Enter; their tensors may be dead or live in
            a loop's frame, so they cannot be looked at from outside.
        pinned: nodes that are control flow, random or stateful, or read such a one.
        awaited: nodes that it means something to wait for: effects, assertions, branches of TF1
            control flow, and what runs after them.
        late_controls: nodes (assertions, mostly) that one of another colour waited for; the
            outputs have to wait for them instead.
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
        """The colour of the op that makes a tensor."""
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
        columns: tensors of the placeholders of each domain; of PAIR, those of the candidates.
        held: the user's placeholders that are PAIR, with the reason.
        waiting: the colour of nodes that read no column, but wait for what does.
        exact: whether what reads the user is PAIR unless it gives the same bits at any number of
            rows.
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
    """Marks a node that starts a mark or has it from an input."""
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
    """The control inputs that a node of a stage, or one that only waits, drops."""
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
