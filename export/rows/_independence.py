"""Decides whether a signature's requests may be joined, split or cached."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import UNSURE, Axis, Fact, R, declared, dim, verdict
from colcast.export.rows._walk import Walk


@dataclass(frozen=True)
class Independence:
    """How the rows of a signature may be batched and cached.

    Attributes:
        rows: whether every output has one row for each row of the signature's domain, which depends
            on that row alone. Rows of other requests may then be in the same run.
        why_not: the op that mixes rows, or what is wrong with an output; "" if `rows`.
        own_length: list features whose longest list in a run affects results. Requests may share a
            run, and rows a state, only if their longest lists have the same length. For a feature
            without `f/length`, this length is the width of its column.
    """

    rows: bool
    why_not: str = ""
    own_length: tuple[str, ...] = ()

    def and_run(self, alike: bool | None) -> "Independence":
        """This finding, unless rows scored separately got other scores, or (None) no run showed."""
        if not self.rows or alike:
            return self
        shown = "was not tried: the model refuses rows" if alike is None else "changed scores"
        return Independence(False, f"scoring rows separately {shown}", self.own_length)


def rows_of(
    columns: Mapping[str, str], graph: tf.Graph, *, rows: Axis | None = R, lists: bool = True
) -> dict[str, Fact]:
    """Facts about columns by tensor, from tensors by column.

    `rows` is the first dimension: () for the columns of one user, None for inputs that have no rows
    and are the same in every run. Unless columns of unknown width are `lists`, rows share a run
    only if they have the same width, as states do.
    """
    found = {}
    for name, tensor in columns.items():
        shape = graph.get_tensor_by_name(tensor).shape
        if shape.rank is None:
            found[tensor] = Fact("mixed", why=f"the rank of {name!r} is unknown")
            continue
        found[tensor] = declared(shape, f"column {name}")
        if rows is None:
            continue
        inner = list(found[tensor].axes[1:])
        if lists and rows and shape[1:2] == [None]:
            inner[0] = (f"longest:{name}",)
        # The column may hold a list's lengths; the converter's nodes tell whether it does.
        of = name.removesuffix("/length")
        role = f"counts:{of}" if lists and of != name and of in columns else None
        found[tensor] = Fact("rows" if rows else "fixed", (rows, *inner), of=role)
    return found


def judge(facts: Mapping[str, Fact], outputs: Mapping[str, str]) -> Independence:
    """What the facts about a signature's outputs, by the signature's key, say."""
    lists: set[str] = set()
    for key, tensor in outputs.items():
        rows, found = verdict(facts[tensor])
        if not rows:
            of_op = facts[tensor].kind == "mixed" or UNSURE in str(found)
            return Independence(False, str(found) if of_op else f"output {key!r}: {found}")
        lists.update(found)
    return Independence(True, own_length=tuple(sorted(lists)))


def at_one_row(fact: Fact) -> Fact | None:
    """What a fact about rows says if a single user is the only row; None if nothing."""
    if fact.kind in ("mixed", "size"):
        return None
    axes = []
    for each in fact.axes:
        factors = (f for f in each if f != R[0])
        axes.append(dim(*(f if isinstance(f, int) or f[0] == "?" else f"?{f}" for f in factors)))
    return Fact("fixed", tuple(axes))


def candidates(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    signature: Signature,
    user: Mapping[str, Fact] = MappingProxyType({}),
) -> Independence:
    """Applies the rule to the candidates of a signature of a MetaGraphDef.

    Candidates share a run only if they have the same user, so user inputs have one row, and the
    user's lists one length. In a columnar signature, all columns have one row per candidate. `user`
    has facts about tensors that are computed from the user's single row.
    """
    graph, given = session.graph, dict(user)
    for columns, rows in ((signature.items, R), (signature.user, ()), (signature.shared, None)):
        given |= rows_of(columns, graph, rows=rows)
    tensors = [*signature.outputs.values(), *signature.inputs.values()]
    found = judge(Walk(FlatGraph(meta_graph, tensors), session, given).facts, signature.outputs)
    own = tuple(name for name in found.own_length if name not in signature.user)
    return Independence(found.rows, found.why_not, own)
