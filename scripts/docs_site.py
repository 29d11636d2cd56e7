"""A MkDocs hook that adds README.md and other pages of the repository's root to those of docs/.

Links in the pages are paths in the repository. The hook changes links to pages into links within
the site, and links to source files, which the site lacks, into plain text.
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
    """Returns a page's text with links within the site."""
    source = _SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return linked(markdown, source)


def linked(markdown: str, source: str) -> str:
    """Returns `markdown`, the text of the file `source`, with links within the site."""

    def replace(link: re.Match[str]) -> str:
        image, text, target, anchor = link.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in PAGES or path.startswith("docs/"):
            return f"{image}[{text}]({PAGES.get(path, path.removeprefix('docs/'))}{anchor})"
        return text if (ROOT / path).exists() else link.group()

    return _LINK.sub(replace, markdown)
