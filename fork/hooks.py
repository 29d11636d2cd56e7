"""The lines changed in TF Serving's own files.

A hook matches byte for byte, in exactly one place, at the line where its release has it, or it is
refused: no fuzz, no offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fork.errors import ForkError


@dataclass(frozen=True)
class Hook:
    """One change of one line.

    Attributes:
        what: Its name in messages.
        path: The file, from the root of the tree.
        line: A line number of the unpatched file that the hook must cover: that of `find`, or,
            with `within`, that of `within` or of the line that opens its rule, just above.
        find: The line changed, as it is upstream. Occurs once in the file, or once below `within`.
        within: A line that occurs once; `find` is then the first such line below it.
        replace: What `find` becomes; the empty string leaves it.
        insert: Lines put behind it.
    """

    what: str
    path: str
    line: int
    find: str
    within: str = ""
    replace: str = ""
    insert: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """What stands in the tree in place of `find` once the hook is in."""
        return (self.replace or self.find, *self.insert)


def patched(tree: Path, hooks: tuple[Hook, ...]) -> dict[str, str]:
    """The files that hooks change, as they are with all hooks in: path -> text.

    Files that have them in already come out as they are.

    Raises:
        ForkError: A hook does not fit; the message has all that do not.
    """
    files: dict[str, list[str]] = {}
    shifts: dict[str, int] = {}  # by how many lines earlier hooks move the later ones, by path
    misfits = []
    for hook in hooks:
        try:
            if hook.path not in files:
                files[hook.path] = _read(tree / hook.path, hook.path)
            _put_in(hook, files[hook.path], shifts.get(hook.path, 0))
            shifts[hook.path] = shifts.get(hook.path, 0) + len(hook.changed) - 1
        except ForkError as misfit:
            misfits.append(str(misfit))
    if misfits:
        raise ForkError("\n".join(misfits))
    return {path: "\n".join(lines) for path, lines in files.items()}


def _read(path: Path, name: str) -> list[str]:
    if not path.is_file():
        raise ForkError(f"{name}: no such file in the tree")
    return path.read_bytes().decode().split("\n")


def _put_in(hook: Hook, lines: list[str], shift: int) -> None:
    """Changes `lines` in place, unless they have the hook already."""
    start = _scope(hook, lines, shift)
    done = _occurrences(lines, hook.changed, start)
    found = done or _occurrences(lines, (hook.find,), start)
    if not found or (len(found) > 1 and not hook.within):
        raise _misfit(hook, lines, shift, f"occurs {len(found)} times, once wanted")
    _check_line(hook, found[0] - shift, start - shift)
    if not done:
        lines[found[0] : found[0] + 1] = hook.changed


def _scope(hook: Hook, lines: list[str], shift: int) -> int:
    """The index from which `find` is looked for."""
    if not hook.within:
        return 0
    found = _occurrences(lines, (hook.within,), 0)
    if len(found) != 1:
        raise ForkError(
            f"{hook.path}: the {hook.what} does not fit: {hook.within.strip()!r} occurs "
            f"{len(found)} times, once wanted (line {hook.line + shift})"
        )
    return found[0]


def _occurrences(lines: list[str], wanted: tuple[str, ...], start: int) -> list[int]:
    """Where `wanted` stands from `start` on, within the rule there if `start` is inside one."""
    end = len(lines)
    if start and ")" in lines[start:]:
        end = lines.index(")", start)
    return [
        i
        for i in range(start, end - len(wanted) + 1)
        if tuple(lines[i : i + len(wanted)]) == wanted
    ]


def _check_line(hook: Hook, found: int, scope: int) -> None:
    first = scope if hook.within else found + 1  # the rule opens one line above `within`
    last = scope + 1 if hook.within else found + 1
    if not first <= hook.line <= last:
        raise ForkError(
            f"{hook.path}: the {hook.what} fits at line {last}, not at line {hook.line} where the "
            f"release has it: an offset of {last - hook.line:+d}, so this is another file"
        )


def _misfit(hook: Hook, lines: list[str], shift: int, why: str) -> ForkError:
    index = hook.line + shift - 1
    there = lines[index] if index < len(lines) else "(the file is shorter)"
    return ForkError(
        f"{hook.path}: the {hook.what} does not fit: {why}\n"
        f"  wanted at line {hook.line}: {hook.find}\n"
        f"  found there:        {there}"
    )
