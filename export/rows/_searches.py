"""Rules for ops that rank a value among others."""

from colcast.export.rows._facts import Fact, has_rows, longest
from colcast.export.rows._op import Mixes, Op, as_value, rule, together


@rule("LowerBound", "UpperBound")
def bound(op: Op) -> Fact:
    """Where each value belongs among the sorted values of the same first dimension."""
    facts = [as_value(fact) for fact in op.inputs[:2]]
    (batch, among), (own, each) = op.axes(0), op.axes(1)
    if batch != own:
        raise Mixes("values are looked for among those of other rows")
    if has_rows([among]):
        raise Mixes("rows are put in order")
    kind, lengths = together(facts)
    return Fact(kind, (own, each), lengths | longest([among]))


@rule("InTopK", "InTopKV2")
def in_top_k(op: Op) -> Fact:
    """Whether the entry at a position is among the largest in its row."""
    facts = [as_value(fact) for fact in op.inputs]
    (batch, classes), (own,) = op.axes(0), op.axes(1)
    if batch != own:
        raise Mixes("positions of different rows")
    if has_rows([classes]):
        raise Mixes("the best of the rows are chosen")
    kind, lengths = together(facts)
    return Fact(kind, (own,), lengths | longest([classes]))
