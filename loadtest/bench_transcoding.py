"""tf.Examples read into columns by the server, against TensorFlow's own parser.

Each variant has a server of its own; all get the same tf.Examples.
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

_OFF = Variant("TensorFlow's parser", "example", ("--example_transcoding=off",))
_EXACT = Variant("exact", "example", ("--example_transcoding=exact",))
_LATE = ("--example_transcoding=late",)
# MovieLens has too few users and movies for requests of nothing but new ones: its stores are off.
VARIANTS: dict[str, tuple[Variant, ...]] = {
    "wide": (
        _OFF,
        _EXACT,
        Variant("late, nothing known", "example", _LATE),
        Variant("late, all known", "example", _LATE, known=True),
    ),
    "movielens": (
        _OFF,
        _EXACT,
        Variant("late, nothing known", "example", (*_LATE, *NO_STORES)),
        Variant("late, all known", "example", _LATE, known=True),
    ),
}


def transcoded(
    model: str, base_path: Path, sizes: Sequence[int], effort: Effort, console: Console
) -> list[Row]:
    """Measures and prints a model of `VARIANTS`."""
    variants = VARIANTS[model]
    steps = len(sizes) * len(variants) * effort.rounds
    with progress_bar(console, f"{model}: tf.Examples, servers in turn", steps) as advance:
        rows = compare_variants(model, base_path, variants, zoo_rows(model), sizes, effort, advance)
    console.print(variants_table(rows, f"{model}, tf.Examples, server CPU per request"))
    return rows
