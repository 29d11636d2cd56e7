"""The version is in the file VERSION; everything else reads it or was written from it."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from colcast.server import find_executable

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = (REPOSITORY / "VERSION").read_text().strip()
DECLARING = ("*.toml", "*CMakeLists.txt", "cmake/", "deploy/", "scripts/", "docs/release.md")


def images(name: str) -> set[str]:
    text = (REPOSITORY / "deploy" / "kubernetes" / f"{name}.yaml").read_text()
    assert yaml.safe_load(text)
    return set(re.findall(r"image: colcast-server:(\S+)", text))


def test_both_distributions_and_the_server_read_the_file() -> None:
    for path in ("pyproject.toml", "server/pyproject.toml"):
        project = tomllib.loads((REPOSITORY / path).read_text())["project"]
        assert "version" not in project
        assert "version" in project["dynamic"]
    assert importlib.metadata.version("colcast") == VERSION
    said = subprocess.run([find_executable(), "--version"], capture_output=True, text=True)
    assert VERSION in said.stdout.split()


def test_the_manifests_and_the_changelog_have_it() -> None:
    assert images("base/deployment") == images("kserve/serving_runtime") == {VERSION}
    example = REPOSITORY / "deploy/kubernetes/overlays/example/kustomization.yaml"
    assert [one["newTag"] for one in yaml.safe_load(example.read_text())["images"]] == [VERSION]
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(\d\S*)\]", changelog, re.MULTILINE)[0] == VERSION


def test_the_version_is_written_nowhere_else() -> None:
    search = ["git", "grep", "-lwF", VERSION, "--", *DECLARING]
    found = subprocess.run(search, cwd=REPOSITORY, capture_output=True, text=True).stdout.split()
    written = {
        "deploy/kubernetes/base/deployment.yaml",
        "deploy/kubernetes/kserve/serving_runtime.yaml",
        "deploy/kubernetes/overlays/example/kustomization.yaml",
    }
    assert set(found) == written


def test_the_script_writes_the_manifests_from_it(tmp_path: Path) -> None:
    copied = ["VERSION", "scripts/version.sh", "deploy/kubernetes"]
    tar = subprocess.run(["tar", "-c", *copied], cwd=REPOSITORY, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=tmp_path, input=tar.stdout, check=True)
    subprocess.run([tmp_path / "scripts/version.sh", "7.8.9"], check=True)
    assert (tmp_path / "VERSION").read_text() == "7.8.9\n"
    left = subprocess.run(["grep", "-rlwF", VERSION, tmp_path], capture_output=True, text=True)
    assert left.stdout == ""
    written = subprocess.run(["grep", "-rhoF", "7.8.9", tmp_path / "deploy"], capture_output=True)
    assert written.stdout.count(b"7.8.9") == 3
