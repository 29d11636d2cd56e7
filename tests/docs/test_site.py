"""The documentation as a site: links work, and pages load nothing from other hosts."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MKDOCS = Path(sys.executable).with_name("mkdocs")
MKDOCS_CONFIG = REPOSITORY / "mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as built by `make docs`, which fails if a link or an anchor does not exist."""
    folder = tmp_path_factory.mktemp("site")
    command = [MKDOCS, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """The URLs that a browser fetches for a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records the sources of scripts, images and style sheets, but not links to click."""
        for name, value in attrs:
            fetched = name in ("src", "srcset", "data") or (tag == "link" and name == "href")
            if fetched and value:
                self.urls.append(value)


def pages(site: Path) -> list[Path]:
    return sorted(site.glob("*.html"))


def test_the_readme_and_every_page_of_docs_are_there(site):
    names = {page.stem for page in pages(site)}
    assert {"index", "contributing", "changelog"} <= names
    assert {page.stem for page in (REPOSITORY / "docs").glob("*.md")} <= names


def test_every_page_of_docs_can_be_found_in_the_navigation():
    navigation = MKDOCS_CONFIG.read_text().partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w.-]+\.md)$", navigation, re.MULTILINE))
    assert {page.name for page in (REPOSITORY / "docs").glob("*.md")} <= listed


def test_pages_load_nothing_from_other_hosts(site):
    loaded = {page.name: Loaded(page).urls for page in pages(site)}
    assert any("stylesheets" in url for url in loaded["index.html"])
    outside = re.compile(r"^(\w+:)?//")
    assert not [url for urls in loaded.values() for url in urls if outside.match(url)]
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text()), sheet


def test_links_to_source_files_become_text_and_links_to_pages_work(site):
    home = (site / "index.html").read_text()
    assert 'href="late.html"' in home
    assert 'src="loadtest.png"' in home
    assert (site / "loadtest.png").is_file()
    rule = (site / "wire.html").read_text()
    assert "expansion_rule.h" in rule
    assert not re.search(r'href="[^"]*\.h"', rule)
