"""Rules for ops on matrices (the last two dimensions): diagonals, linear systems."""

from collections.abc import Sequence

from colcast.export.rows._facts import Axis, Fact, axis, broadcast, has_rows, longest
from colcast.export.rows._op import Mixes, Op, as_value, count, rule, together


@rule("MatrixBandPart")
def band(op: Op) -> Fact:
    """Keeps a band of each matrix; the rest becomes 0."""
    (fact, *diagonals), axes = map(as_value, op.inputs), op.axes(0)
    if has_rows(axes[-2:]):
        raise Mixes("rows are selected by position")
    lengths = frozenset[str]().union(*(each.lengths for each in diagonals))
    return fact.changed(lengths=fact.lengths | lengths)


@rule("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def diagonal_matrix(op: Op) -> Fact:
    """Makes matrices with given main diagonals."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    _main_only(op)
    if has_rows([axes[-1]]):
        raise Mixes("every row is combined with every other")
    if any(
        size not in (-1, *axes[-1]) for index in _given(op, (2, 3)) for size in op.numbers(index)
    ):
        raise Mixes("the matrix is larger than its diagonal")
    lengths = frozenset[str]().union(*(_lengths(op, index) for index in _given(op, (4,))))
    return fact.changed(axes=(*axes, axes[-1]), lengths=fact.lengths | lengths)


@rule("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def main_diagonal(op: Op) -> Fact:
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    _main_only(op)
    if has_rows(axes[-2:]):
        raise Mixes("rows are selected by position")
    return fact.changed(axes=(*axes[:-2], _shorter(axes[-2:])))


@rule("Cholesky", "MatrixInverse")
def of_each_matrix(op: Op) -> Fact:
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    if has_rows(axes[-2:]):
        raise Mixes("rows are combined within a matrix")
    return fact.changed(lengths=fact.lengths | longest(axes[-2:]))


@rule("MatrixSolve", "MatrixTriangularSolve")
def solve(op: Op) -> Fact:
    """Solves a system for each column of the right-hand side."""
    facts = [as_value(fact) for fact in op.inputs]
    matrix, right = op.axes(0), op.axes(1)
    met = broadcast(matrix[:-2], right[:-2])
    if met is None or has_rows(matrix[-2:]) or has_rows(right[-2:-1]):
        raise Mixes("rows are combined within a matrix")
    batch, ties = met
    if has_rows(batch) and has_rows(right[-1:]):
        raise Mixes("every row is combined with every other")
    kind, lengths = together(facts)
    return Fact(kind, (*batch, *right[-2:]), lengths | ties | longest([*matrix[-2:], right[-2]]))


def _main_only(op: Op) -> None:
    if any(op.number(index) != 0 for index in _given(op, (1,))):
        raise Mixes("it uses a diagonal other than the main one")


def _given(op: Op, indices: Sequence[int]) -> list[int]:
    """Drops the indices of inputs that this version of the op does not have."""
    return [index for index in indices if index < len(op.inputs)]


def _lengths(op: Op, index: int) -> frozenset[str]:
    return as_value(op.inputs[index]).lengths


def _shorter(axes: Sequence[Axis]) -> Axis:
    one, other = axes
    return one if one == other else axis(min(count(one), count(other)))
