"""A MkDocs hook that adds README.md and the other pages of its folder to the pages of docs/.

Links are written for readers of the repository. This hook changes links to pages to the site's
addresses. Links to source files, which the site does not have, become plain text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_SOURCES = {page: source for source, page in PAGES.items()}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages outside docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Changes the links of a page to the site's addresses."""
    source = _SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return linked(markdown, source)


def linked(markdown: str, source: str) -> str:
    """The text of `source`, a path in the repository, with the site's links."""

    def replace(link: re.Match[str]) -> str:
        image, text, target, anchor = link.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in PAGES or path.startswith("docs/"):
            return f"{image}[{text}]({PAGES.get(path, path.removeprefix('docs/'))}{anchor})"
        return text if (ROOT / path).exists() else link.group()

    return _LINK.sub(replace, markdown)
