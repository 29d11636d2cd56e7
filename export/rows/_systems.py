"""Ops that take matrices, the last two dimensions, for systems of equations."""

from colcast.export.rows._facts import Fact, broadcast, has_rows, longest
from colcast.export.rows._op import Mixes, Op, as_value, rule, together


@rule("Cholesky", "MatrixInverse")
def of_each_matrix(op: Op) -> Fact:
    """Another matrix for each."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    if has_rows(axes[-2:]):
        raise Mixes("rows of a matrix meet")
    return fact.changed(lengths=fact.lengths | longest(axes[-2:]))


@rule("MatrixSolve", "MatrixTriangularSolve")
def solve(op: Op) -> Fact:
    """A solution for each column of the right-hand side."""
    facts = [as_value(fact) for fact in op.inputs]
    matrix, right = op.axes(0), op.axes(1)
    met = broadcast(matrix[:-2], right[:-2])
    if met is None or has_rows(matrix[-2:]) or has_rows(right[-2:-1]):
        raise Mixes("rows of a matrix meet")
    batch, ties = met
    if has_rows(batch) and has_rows(right[-1:]):
        raise Mixes("every row meets every other")
    kind, lengths = together(facts)
    return Fact(kind, (*batch, *right[-2:]), lengths | ties | longest([*matrix[-2:], right[-2]]))
