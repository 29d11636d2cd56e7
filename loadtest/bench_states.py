"""What state stores save on `wide`: nothing known against everything known.

Every figure is server CPU per request, taken in turn on servers that differ in their flags only.
"""

from collections.abc import Sequence
from pathlib import Path

from colcast.loadtest.formats import NO_STORES
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.variants import (
    Effort,
    Row,
    Variant,
    compare_variants,
    variants_table,
    zoo_rows,
)
from rich.console import Console

MODEL = "wide"
VARIANTS = (
    Variant("tf.Example", "example", ("--example_transcoding=off", *NO_STORES)),
    Variant("late, no stores", "late", NO_STORES),
    Variant("late, nothing known", "late"),
    Variant("late, all known", "late", known=True),
)


def known_and_unknown(
    base_path: Path, sizes: Sequence[int], effort: Effort, console: Console
) -> list[Row]:
    """tf.Example, late without stores, with nothing known, and with all users and items known."""
    steps = len(sizes) * len(VARIANTS) * effort.rounds
    with progress_bar(console, "known and unknown, servers in turn", steps) as advance:
        rows = compare_variants(MODEL, base_path, VARIANTS, zoo_rows(MODEL), sizes, effort, advance)
    console.print(variants_table(rows, f"{MODEL}, server CPU per request"))
    for size in dict.fromkeys(row.candidates for row in rows):
        example, late, unknown, known = (row for row in rows if row.candidates == size)
        console.print(
            f"N = {size}: nothing known is {unknown.cpu_ms / late.cpu_ms:.2f} times late without "
            f"stores; all known is {known.cpu_ms / example.cpu_ms:.3f} of tf.Example",
            highlight=False,
        )
    return rows
