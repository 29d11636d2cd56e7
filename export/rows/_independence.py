"""Decides whether a signature's requests may be joined, split or cached."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import UNSURE, Axis, Fact, R, declared, dim, mixed, verdict
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
            run, and rows a state, only if their longest lists have the same length. For a feature
            without `f/length`, this length is the width of its column.
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
    columns: Mapping[str, str], graph: tf.Graph, *, rows: Axis = R, lists: bool = True
) -> dict[str, Fact]:
    """Facts about columns that have one row per row of the run, by tensor.

    Args:
        columns: tensors by column name.
        graph: the graph with the tensors.
        rows: the dimension of rows; () for the columns of one user.
        lists: whether columns of unknown width are lists. Otherwise rows share a run only if their
            columns have the same width, as for states.
    """
    found = shared(columns, graph)
    for name, tensor in columns.items():
        if found[tensor].kind == "mixed":
            continue
        inner = list(found[tensor].axes[1:])
        if lists and rows and graph.get_tensor_by_name(tensor).shape[1:2] == [None]:
            inner[0] = (f"longest:{name}",)
        # The column may hold a list's lengths; the converter's nodes tell whether it does.
        of = name.removesuffix(_LENGTH)
        role = f"counts:{of}" if lists and of != name and of in columns else None
        found[tensor] = Fact("rows" if rows else "fixed", (rows, *inner), of=role)
    return found


def shared(columns: Mapping[str, str], graph: tf.Graph) -> dict[str, Fact]:
    """Facts about columns that are the same in every run, by tensor."""
    found = {}
    for name, tensor in columns.items():
        shape = graph.get_tensor_by_name(tensor).shape
        found[tensor] = mixed(f"the rank of {name!r} is unknown")
        if shape.rank is not None:
            found[tensor] = declared(shape, f"column {name}")
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
    """Applies the rule to the candidates of a signature.

    Candidates share a run only if they have the same user, so user inputs have one row, and the
    user's lists one length. In a columnar signature, all columns have one row per candidate.

    Args:
        meta_graph: the MetaGraphDef with the signature.
        session: an initialised session with its nodes.
        signature: the signature.
        user: facts about tensors that are computed from the user's single row.
    """
    graph = session.graph
    of_items, of_user = rows_of(signature.items, graph), rows_of(signature.user, graph, rows=())
    given = {**user, **of_items, **of_user, **shared(signature.shared, graph)}
    tensors = [*signature.outputs.values(), *signature.inputs.values()]
    found = judge(Walk(FlatGraph(meta_graph, tensors), session, given).facts, signature.outputs)
    own = tuple(name for name in found.own_length if name not in signature.user)
    return Independence(found.rows, found.why_not, own)
