"""Decides whether a signature's requests may be joined, split or cached."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph, producer
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import (
    Axis,
    Fact,
    Kind,
    axis,
    fixed,
    has_rows,
    longest,
    mixed,
    without_open,
)
from colcast.export.rows._walk import Walk

_LENGTH = "/length"


@dataclass(frozen=True)
class Independence:
    """How the rows of a signature may be batched and cached.

    Attributes:
        rows: whether every output has one row for each row of the signature's domain, and each
            output row depends on that row alone. Rows of other requests may then be in the same
            run.
        why_not: the op that mixes rows, or what is wrong with an output; "" if `rows`.
        own_length: list features whose longest list in a run affects results. Requests may share a
            run only if their longest lists have the same length. For a feature without `f/length`,
            this length is the width of its column.
    """

    rows: bool
    why_not: str = ""
    own_length: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The values recorded in colcast.json."""
        return {**asdict(self), "own_length": list(self.own_length)}

    def and_run(self, alike: bool | None) -> "Independence":
        """Returns this finding, or a negative one if runs contradicted or could not confirm it.

        Args:
            alike: whether rows scored separately got the same scores; None if no run could show
                that.
        """
        if not self.rows or alike:
            return self
        shown = "was not tried: the model refuses rows" if alike is None else "changed scores"
        return Independence(False, f"scoring rows separately {shown}", self.own_length)


def rows_of(
    domain: str, columns: Mapping[str, str], graph: tf.Graph, *, lists: bool = True
) -> dict[str, Fact]:
    """Facts about the columns of a domain, by tensor.

    Args:
        domain: the domain.
        columns: tensors by column name. `f/length` gives the length of each row's list in `f`;
            without it, all lists have the width sent.
        graph: the graph with the tensors.
        lists: whether columns of unknown width are lists. Otherwise rows share a run only if their
            columns have the same width, as for states.
    """
    found = {}
    for name, tensor in columns.items():
        rows = (f"rows:{domain}",)
        shape = graph.get_tensor_by_name(tensor).shape
        if shape.rank is None:
            found[tensor] = mixed(f"the rank of {name!r} is unknown")
            continue
        inner = _axes_of(name, shape[1:])
        mark = None
        if lists and inner and shape[1] is None:
            inner[0] = (f"longest:{name}@{domain}",)
        if name.endswith(_LENGTH) and name.removesuffix(_LENGTH) in columns:
            mark = ("length", f"{name.removesuffix(_LENGTH)}@{domain}")
        found[tensor] = Fact(Kind.ROWS, (rows, *inner), mark=mark)
    return found


def once(user: Mapping[str, str], shared: Mapping[str, str], graph: tf.Graph) -> dict[str, Fact]:
    """Facts about one user's columns (one row each) and columns without rows, by tensor."""
    found = {}
    for name, tensor in {**user, **shared}.items():
        shape = graph.get_tensor_by_name(tensor).shape
        if shape.rank is None:
            found[tensor] = fixed(None)
            continue
        axes = _axes_of(name, shape)
        found[tensor] = fixed(((), *axes[1:]) if name in user else tuple(axes))
    return found


def _axes_of(name: str, shape: tf.TensorShape) -> list[Axis]:
    sizes = enumerate(shape)
    return [(f"size:{name}/{n}",) if size is None else axis(size) for n, size in sizes]


def facts_of(
    graph: FlatGraph, session: tf.compat.v1.Session, given: Mapping[str, Fact]
) -> Mapping[str, Fact]:
    """Facts about every tensor of a graph, derived from `given`, the facts about its inputs."""
    return Walk(graph, given, {}, session.graph, partial(_evaluate, session)).facts


def find_independence(
    graph: FlatGraph,
    session: tf.compat.v1.Session,
    given: Mapping[str, Fact],
    outputs: Mapping[str, str],
    domain: str,
    copies: Mapping[str, Fact] = MappingProxyType({}),
) -> Independence:
    """Applies the rule to a signature's graph.

    Args:
        graph: all nodes from which the outputs are computed.
        session: an initialised session with the nodes.
        given: facts about the inputs, and about other tensors that the caller knows.
        outputs: tensors by the signature's key.
        domain: the domain whose rows the outputs have.
        copies: facts about tensors that repeat a one-row column for each row.
    """
    facts = Walk(graph, given, copies, session.graph, partial(_evaluate, session)).facts
    lengths: set[str] = set()
    for key, tensor in outputs.items():
        fact = facts[tensor]
        if fact.kind is Kind.MIXED:
            return Independence(False, fact.why)
        if not fact.axes or without_open(fact.axes[0]) != (f"rows:{domain}",):
            why = f"output {key!r} does not have one row per {domain}{_shown(fact)}"
            return Independence(False, why)
        if has_rows(fact.axes[1:]):
            why = f"output {key!r} has entries of several rows in each row{_shown(fact)}"
            return Independence(False, why)
        if not fact.plain or fact.kind not in (Kind.ROWS, Kind.FIXED):
            return Independence(False, f"output {key!r} holds positions, not values")
        lengths |= fact.lengths | longest(fact.axes)
    lengths -= _longest(copies)  # a repeated list has the same length on every row
    unknown = sorted(lengths - _longest(given))
    if unknown:
        name = unknown[0].removeprefix("?").rpartition("@")[0]
        why = f"it depends on the longest list that {name} makes for any row"
        return Independence(False, why)
    own = tuple(sorted({lists.rpartition("@")[0] for lists in lengths}))
    return Independence(True, own_length=own)


def _longest(facts: Mapping[str, Fact]) -> frozenset[str]:
    return longest(each for fact in facts.values() for each in fact.axes or ())


def _shown(fact: Fact) -> str:
    if fact.axes is None:
        return ": its rank is unknown"
    sizes = ["*".join(map(str, each)) or "1" for each in fact.axes]
    return f": its shape is [{', '.join(sizes)}]"


def _evaluate(session: tf.compat.v1.Session, tensor: str, feeds: Mapping[str, Any]) -> Any:
    try:
        return session.run(tensor, feeds)
    except (tf.errors.OpError, KeyError, ValueError, TypeError):
        return None


CANDIDATE = "candidate"


def candidates(
    meta_graph: Any, session: tf.compat.v1.Session, signature: Signature
) -> Independence:
    """Applies the rule to the candidates of a signature.

    Candidates share a run only if they have the same user, so user inputs have one row. In a
    columnar signature, all columns have one row per candidate.
    """
    tensors = [*signature.outputs.values(), *signature.inputs.values()]
    given = {
        **rows_of(CANDIDATE, signature.items, session.graph),
        **once(signature.user, signature.shared, session.graph),
    }
    graph = FlatGraph(meta_graph, tensors)
    copies = _copies(graph, rows_of(CANDIDATE, signature.user, session.graph))
    return find_independence(graph, session, given, signature.outputs, CANDIDATE, copies)


def _copies(graph: FlatGraph, columns: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts about tensors that repeat an unmodified column, as if each row had its own value."""
    facts = {producer(tensor): fact for tensor, fact in columns.items()}
    found = {}
    for node in graph.nodes.values():
        if node.op != "Tile":
            continue
        source = producer(node.input[0])
        while _is_as_it_came(graph, source):
            source = producer(graph.nodes[source].input[0])
        if source in facts:
            found[f"{node.name}:0"] = facts[source]
    return found


def _is_as_it_came(graph: FlatGraph, name: str) -> bool:
    """Whether an op forwards its input unchanged, except that a negative length becomes 0."""
    node = graph.nodes[name]
    if node.op != "Maximum":
        return bool(node.op == "EnsureShape")
    least = graph.nodes[producer(node.input[1])]
    return least.op == "Const" and not np.any(tf.make_ndarray(least.attr["value"].tensor))
