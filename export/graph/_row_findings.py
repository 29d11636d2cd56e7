"""Finds the tensors of a stage that can be states: their rows are independent of each other.

It runs batches of rows together, in another order, with one repeated, and alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from colcast.export.graph._comparison import non_finite_hint
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Finding, Findings, Probe, RowKind, equal, merged
from colcast.export.graph._requests import Array, Columns, Lengths, trimmed

_ALONE = 3  # rows of a batch that are also run alone
_TRIES = 8  # batches to try until the model accepts one
_PADDING = "depends on the longest list of its batch"


def classify_rows(
    probe: Probe,
    draw: Callable[[int], Columns],
    sizes: Iterable[int],
    tolerance: float,
    lengths: Lengths,
) -> Findings:
    """Determines the kinds of a stage's tensors. A tensor of kind ROW can be a state.

    Lists are padded to the longest of their batch, so a row's padding differs between batches.

    Args:
        probe: runs the tensors.
        draw: `draw(n)` returns the columns of n new rows.
        sizes: numbers of rows of the batches.
        tolerance: largest difference that counts as equal, relative to the tensor's largest value.
        lengths: the columns of lists, with the columns of their lengths.

    Raises:
        ExportError: the stage fails on several consecutive batches.
    """
    found: Findings = {}
    for rows in sizes:
        for tensor, finding in _batch(probe, draw, rows, tolerance, lengths).items():
            found[tensor] = _together(found[tensor], finding) if tensor in found else finding
    return found


def _batch(
    probe: Probe, draw: Callable[[int], Columns], rows: int, tolerance: float, lengths: Lengths
) -> Findings:
    """Runs one batch in several ways; returns the findings about each tensor."""
    order = np.random.default_rng(rows).permutation([*range(rows), 0])
    for left in reversed(range(_TRIES)):
        columns = draw(rows)
        first = [
            {name: column[row : row + 1] for name, column in columns.items()}
            for row in range(min(rows, _ALONE))
        ]
        try:
            whole = probe(columns)
            mixed = probe({name: column[order] for name, column in columns.items()})
            alone = [probe(row) for row in first]
            unpadded = [probe(trimmed(row, lengths)) for row in first]
            break
        except ExportError:
            if not left:
                raise
    found = {}
    for tensor, value in whole.items():
        ones = [run[tensor] for run in alone]
        found[tensor] = finding = _classify(value, ones, rows, tolerance)
        if finding.kind is not RowKind.ROW:
            continue
        other = Finding(RowKind.OTHER, finding.shape, counts_rows=True)
        if not _same_without_padding(ones, [run[tensor] for run in unpadded], tolerance):
            found[tensor] = replace(other, reason=_PADDING)
        elif not _same_rows(mixed[tensor], value, order, tolerance):
            found[tensor] = replace(other, reason="a row depends on its position")
    return found


def _together(one: Finding, other: Finding) -> Finding:
    """Combines the findings of two batches; `counts_rows` is true only if it is for both."""
    together = merged(one, other)
    if one.kind is other.kind is RowKind.OTHER:
        return replace(together, counts_rows=one.counts_rows and other.counts_rows)
    return together


def _classify(whole: Array, ones: list[Array], rows: int, tolerance: float) -> Finding:
    shape = ones[0].shape
    is_float = whole.dtype.kind in "fc"
    if all(one.shape == whole.shape for one in ones) and rows > 1:
        if all(equal(one, whole, tolerance) for one in ones):
            return Finding(RowKind.OTHER, shape, reason="the same in every row")
        return Finding(
            RowKind.OTHER, shape, reason="changes with the rows of its batch", counts_rows=True
        )
    if whole.ndim and whole.shape[0] == rows and all(_fits(one, whole) for one in ones):
        for row, one in enumerate(ones):
            inside = whole[row : row + 1][tuple(slice(0, size) for size in one.shape)]
            if not equal(one, inside, tolerance):
                reason = f"row {row} of {rows} has other values alone{non_finite_hint(one, inside)}"
                return Finding(RowKind.OTHER, shape, reason=reason, counts_rows=is_float)
        return Finding(RowKind.ROW, (1, *_inner(whole, ones)))
    reason = f"shape {list(shape)} alone, {list(whole.shape)} at {rows} rows"
    return Finding(RowKind.OTHER, shape, reason=reason)


def _same_without_padding(ones: list[Array], short: list[Array], tolerance: float) -> bool:
    pairs = zip(ones, short, strict=True)
    return all(equal(a, b, tolerance) for a, b in pairs if a.shape == b.shape)


def _fits(one: Array, whole: Array) -> bool:
    if one.ndim != whole.ndim or not one.ndim or one.shape[0] != 1:
        return False
    return all(a <= b for a, b in zip(one.shape[1:], whole.shape[1:], strict=True))


def _inner(whole: Array, ones: list[Array]) -> tuple[int | None, ...]:
    shapes = {one.shape[1:] for one in ones} | {whole.shape[1:]}
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))


def _same_rows(mixed: Array, whole: Array, order: Array, tolerance: float) -> bool:
    return mixed.shape[:1] == order.shape and equal(mixed, whole[order], tolerance)
