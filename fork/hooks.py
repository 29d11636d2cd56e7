"""The lines changed in TF Serving's own files.

A hook must match byte for byte, in exactly one place and at its line in the release, without fuzz
or offset; otherwise it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ForkError(Exception):
    """An error whose message says in one or two lines what to fix."""


@dataclass(frozen=True)
class Hook:
    """A change of one line.

    Attributes:
        what: Its name in messages.
        path: The file, relative to the root of the tree.
        line: The line number of `find` in the unpatched file. With `within`, it is the line number
            of `within`, or of the line above that opens its rule.
        find: The upstream line to change. Occurs once in the file, or once below `within`.
        within: A line that occurs once; the hook changes the first `find` below it.
        replace: The replacement of `find`; an empty string leaves it unchanged.
        insert: Lines added after it.
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
        """The lines that replace `find` in the tree."""
        return (self.replace or self.find, *self.insert)


def patched(tree: Path, hooks: tuple[Hook, ...]) -> dict[str, str]:
    """The files that hooks change, with all hooks applied: path -> text.

    Files that have the hooks already are returned unchanged.

    Raises:
        ForkError: A hook does not fit; the message lists all of them.
    """
    files: dict[str, list[str]] = {}
    shifts: dict[str, int] = {}  # path -> number of lines that earlier hooks have inserted
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
    """Applies a hook to `lines` in place, unless they have it already."""
    start = _scope(hook, lines, shift)
    done = _occurrences(lines, hook.changed, start)
    found = done or _occurrences(lines, (hook.find,), start)
    if not found or (len(found) > 1 and not hook.within):
        raise _misfit(hook, lines, shift, f"occurs {len(found)} times, expected once")
    _check_line(hook, found[0] - shift, start - shift)
    if not done:
        lines[found[0] : found[0] + 1] = hook.changed


def _scope(hook: Hook, lines: list[str], shift: int) -> int:
    """The index at which the search for `find` begins."""
    if not hook.within:
        return 0
    found = _occurrences(lines, (hook.within,), 0)
    if len(found) != 1:
        raise ForkError(
            f"{hook.path}: the {hook.what} does not fit: {hook.within.strip()!r} occurs "
            f"{len(found)} times, expected once (line {hook.line + shift})"
        )
    return found[0]


def _occurrences(lines: list[str], wanted: tuple[str, ...], start: int) -> list[int]:
    """The indexes of `wanted` from `start` on, up to the end of the rule that contains `start`."""
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
            f"{hook.path}: the {hook.what} fits at line {last}, not at line {hook.line} as in the "
            f"release (an offset of {last - hook.line:+d}), so this is another file"
        )


def _misfit(hook: Hook, lines: list[str], shift: int, why: str) -> ForkError:
    index = hook.line + shift - 1
    there = lines[index] if index < len(lines) else "(the file is shorter)"
    return ForkError(
        f"{hook.path}: the {hook.what} does not fit: {why}\n"
        f"  expected at line {hook.line}: {hook.find}\n"
        f"  found there:        {there}"
    )
