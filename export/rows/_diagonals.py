"""Ops that know the diagonals of matrices, the last two dimensions."""

from collections.abc import Sequence

from colcast.export.rows._facts import Axis, Fact, axis, has_rows
from colcast.export.rows._op import Mixes, Op, as_value, count, rule


@rule("MatrixBandPart")
def band(op: Op) -> Fact:
    """Part of each matrix; the rest becomes 0."""
    (fact, *diagonals), axes = map(as_value, op.inputs), op.axes(0)
    if has_rows(axes[-2:]):
        raise Mixes("rows are kept by their position")
    lengths = frozenset[str]().union(*(each.lengths for each in diagonals))
    return fact.changed(lengths=fact.lengths | lengths)


@rule("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def diagonal_matrix(op: Op) -> Fact:
    """Matrices of their main diagonals."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    _main_only(op)
    if has_rows([axes[-1]]):
        raise Mixes("every row meets every other")
    if any(
        size not in (-1, *axes[-1]) for index in _given(op, (2, 3)) for size in op.numbers(index)
    ):
        raise Mixes("a matrix larger than its diagonal")
    lengths = frozenset[str]().union(*(_lengths(op, index) for index in _given(op, (4,))))
    return fact.changed(axes=(*axes, axes[-1]), lengths=fact.lengths | lengths)


@rule("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def main_diagonal(op: Op) -> Fact:
    """The main diagonal of each matrix."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    _main_only(op)
    if has_rows(axes[-2:]):
        raise Mixes("rows are kept by their position")
    return fact.changed(axes=(*axes[:-2], _shorter(axes[-2:])))


def _main_only(op: Op) -> None:
    if any(op.number(index) != 0 for index in _given(op, (1,))):
        raise Mixes("another diagonal than the main one")


def _given(op: Op, indices: Sequence[int]) -> list[int]:
    """Those of some inputs that this version of the op has."""
    return [index for index in indices if index < len(op.inputs)]


def _lengths(op: Op, index: int) -> frozenset[str]:
    return as_value(op.inputs[index]).lengths


def _shorter(axes: Sequence[Axis]) -> Axis:
    one, other = axes
    return one if one == other else axis(min(count(one), count(other)))
