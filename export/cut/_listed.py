"""Shortens long lists for a console."""

from collections.abc import Iterable, Sequence

Size = int | None


def listed(title: str, entries: Sequence[str], most: int) -> list[str]:
    """A title and the first entries below it, one per line; empty if there are no entries."""
    if not entries:
        return []
    more = len(entries) - most
    shown = [f"    {entry}" for entry in entries[:most]]
    return [f"  {title}:", *shown, *([f"    and {more} more"] if more > 0 else [])]


def grouped(tensors: Iterable[tuple[str, str, Sequence[Size], str]]) -> list[str]:
    """Groups tensors (name, dtype, shape, other distinction) by kind, and names one of each."""
    groups: dict[str, list[str]] = {}
    for name, dtype, shape, more in tensors:
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        groups.setdefault(f"{dtype} [{sizes}]{more}", []).append(name)
    return [
        f"{len(names)} x {kind}: {names[0]}{', ...' * (len(names) > 1)}"
        for kind, names in groups.items()
    ]
