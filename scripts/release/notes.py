"""The release notes: a version's section of the changelog, without its heading.

    python scripts/release/notes.py VERSION

Lines under `Unreleased` belong to no version yet. A trial release that is built from a tree with
such lines has them as its notes.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
UNRELEASED = "Unreleased"


def sections(changelog: str) -> dict[str, str]:
    """NAME -> the text under the heading `## [NAME]`."""
    parts = re.split(r"^## \[(\S+)\].*\n", changelog, flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def notes(changelog: str, version: str) -> str:
    """The release notes of `version`, including a remark if it is not a final release.

    Raises:
        ValueError: the changelog has no such section.
    """
    of = sections(changelog)
    if version not in of:
        raise ValueError(f"CHANGELOG.md has no section [{version}]")
    if of.get(UNRELEASED):
        return f"# colcast after {version}: a trial, no release\n\n{of[UNRELEASED]}\n"
    return f"# colcast {version}\n\n{of[version]}\n"


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text(), sys.argv[1]), end="")
