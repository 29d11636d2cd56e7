"""The lines changed in TF Serving's own files.

A hook must match in exactly one place and at its line in the release; otherwise it is refused.
"""

from __future__ import annotations

import re
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
        line: The line number of `find` in the unpatched file. With `rule`, it is the line number of
            `rule`, or of the line above that opens it.
        find: The upstream line to change.
        changed: The lines that replace it; the last of them occurs in no unpatched file.
        rule: The line that begins the rule with `find`; empty if `find` occurs once in the file.
    """

    what: str
    path: str
    line: int
    find: str
    changed: tuple[str, ...]
    rule: str = ""

    def put_in(self, text: str) -> str:
        """The text of the file with this change; a text that has it already stays unchanged.

        Raises:
            ForkError: The hook does not fit.
        """
        if f"\n{self.changed[-1]}\n" in text:
            return text
        # Up to the rule's closing bracket, which stands alone in its line.
        before = rf"{re.escape(self.rule)}\n(?:(?!\)\n).*\n)*?" if self.rule else ""
        found = list(re.finditer(rf"^({before}){re.escape(self.find)}$", text, re.M))
        lines = [text.count("\n", 0, one.start()) + 1 for one in found]
        if lines not in ([self.line], [self.line + bool(self.rule)]):
            there = text.split("\n")[self.line - 1 : self.line] or ["(the file is shorter)"]
            raise ForkError(
                f"{self.path}: the {self.what} does not fit: it is at {lines or 'no line'}\n"
                f"  expected at line {self.line}: {self.rule or self.find}\n"
                f"  found there:        {there[0]}"
            )
        (one,) = found
        return text[: one.end(1)] + "\n".join(self.changed) + text[one.end() :]


def patched(tree: Path, hooks: tuple[Hook, ...]) -> dict[str, str]:
    """The files that hooks change, with all hooks applied: path -> text.

    Raises:
        ForkError: A hook does not fit; the message lists all of them.
    """
    files: dict[str, str] = {}
    misfits = []
    for hook in reversed(hooks):  # from the end of a file, so that lines keep their numbers
        try:
            text = files.get(hook.path) or _read(tree / hook.path, hook.path)
            files[hook.path] = hook.put_in(text)
        except ForkError as misfit:
            misfits.append(str(misfit))
    if misfits:
        raise ForkError("\n".join(misfits))
    return files


def _read(path: Path, name: str) -> str:
    if not path.is_file():
        raise ForkError(f"{name}: no such file in the tree")
    return path.read_bytes().decode()
