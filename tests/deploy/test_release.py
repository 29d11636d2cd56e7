"""Releases: notes, matching version numbers, files in deploy/."""

import importlib.metadata
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from colcast.server import find_executable

from ..server.servers import server_flags

REPOSITORY = Path(__file__).resolve().parents[2]
CHANGELOG = """# Changelog

## [Unreleased]
{unreleased}
## [1.1.0] - 2026-01-02

### Added

- More.

## [1.0.0] - 2026-01-01

- All.
"""


def test_the_notes_are_the_versions_section_or_say_that_it_is_a_trial() -> None:
    notes = runpy.run_path(str(REPOSITORY / "scripts/release/notes.py"))["notes"]
    released = CHANGELOG.format(unreleased="")
    assert notes(released, "1.1.0") == "# colcast 1.1.0\n\n### Added\n\n- More.\n"
    assert notes(released, "1.0.0") == "# colcast 1.0.0\n\n- All.\n"
    text = notes(CHANGELOG.format(unreleased="\n- Not yet.\n"), "1.1.0")
    assert text == "# colcast after 1.1.0: a trial, no release\n\n- Not yet.\n"
    with pytest.raises(ValueError, match=r"no section \[2\.0\.0\]"):
        notes(released, "2.0.0")


VERSION = (REPOSITORY / "VERSION").read_text().strip()
DECLARING = ("*.toml", "*CMakeLists.txt", "cmake/", "deploy/", "scripts/", "docs/versions.md")


def test_both_distributions_and_the_server_read_the_file() -> None:
    for path in ("pyproject.toml", "server/pyproject.toml"):
        project = tomllib.loads((REPOSITORY / path).read_text())["project"]
        assert "version" not in project
        assert "version" in project["dynamic"]
    assert importlib.metadata.version("colcast") == VERSION
    said = subprocess.run([find_executable(), "--version"], capture_output=True, text=True)
    assert VERSION in said.stdout.split()


def test_the_manifests_and_the_changelog_have_it_and_nothing_else() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(\d\S*)\]", changelog, re.MULTILINE)[0] == VERSION
    search = ["git", "grep", "-lwF", VERSION, "--", *DECLARING]
    found = subprocess.run(search, cwd=REPOSITORY, capture_output=True, text=True).stdout.split()
    written = {
        "deploy/kubernetes/base/deployment.yaml",
        "deploy/kubernetes/kserve/serving_runtime.yaml",
        "deploy/kubernetes/overlays/example/kustomization.yaml",
    }
    assert set(found) == written


DEPLOY = REPOSITORY / "deploy"


def test_the_dockerfile_passes_the_linter():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_is_built_with_the_versions_that_are_tested():
    def lines(name: str) -> set[str]:
        return set((REPOSITORY / "requirements" / name).read_text().split())

    assert lines("build.lock") < lines("dev.lock")


def test_the_unit_is_one_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "colcast-server.service"
    text = (DEPLOY / "systemd" / unit.name).read_text()
    # The built executable stands in for the installed one.
    assert "ExecStart=/opt/colcast/bin/colcast_model_server " in text
    unit.write_text(text.replace("/opt/colcast/bin/colcast_model_server", str(find_executable())))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True
    )
    assert unit.name not in done.stderr, done.stderr
    assert done.returncode == 0
    assert set(re.findall(r"(?<![\w-])--(\w+)=", text)) <= server_flags() | {"flagfile"}


def test_every_flag_is_documented_and_no_other():
    flags = server_flags()
    assert len(flags) > 30
    pages = "".join(page.read_text() for page in (REPOSITORY / "docs").glob("*.md"))
    # This page lists flags that have no effect here.
    compared = (REPOSITORY / "docs" / "compatibility.md").read_text()
    missing = {flag for flag in flags if f"--{flag}" not in pages and f"`{flag}`" not in compared}
    assert missing == set()
    named = set(re.findall(r"--(?:no)?([a-z]+(?:_[a-z]+)+)\b", pages))
    assert named - flags == set()
