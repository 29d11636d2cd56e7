"""The release notes: a version's section of the changelog, without its heading.

    python scripts/release/notes.py VERSION

If there are lines under `Unreleased`, this is a trial release, and these lines are its notes.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
UNRELEASED = "Unreleased"


def sections(changelog: str) -> dict[str, str]:
    """Returns NAME -> the text under the heading `## [NAME]`."""
    parts = re.split(r"^## \[(\S+)\].*\n", changelog, flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def notes(changelog: str, version: str) -> str:
    """Returns the notes of `version` or, if there are any, the unreleased lines as a trial's notes.

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
