"""One version, wherever it is written."""

import re
import tomllib
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]


def declared(path: str) -> str:
    version: str = tomllib.loads((REPOSITORY / path).read_text())["project"]["version"]
    return version


def images(name: str) -> set[str]:
    text = (REPOSITORY / "deploy" / "kubernetes" / f"{name}.yaml").read_text()
    assert yaml.safe_load(text)
    return set(re.findall(r"image: colcast-server:(\S+)", text))


def test_both_distributions_the_server_the_images_and_the_changelog_have_one_version():
    version = declared("pyproject.toml")
    assert declared("server/pyproject.toml") == version
    cmake = (REPOSITORY / "CMakeLists.txt").read_text()
    assert re.findall(r"project\(colcast VERSION (\S+)", cmake) == [version]
    assert images("base/deployment") == images("kserve/serving_runtime") == {version}
    example = REPOSITORY / "deploy/kubernetes/overlays/example/kustomization.yaml"
    assert [one["newTag"] for one in yaml.safe_load(example.read_text())["images"]] == [version]
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(\d\S*)\]", changelog, re.MULTILINE)[0] == version
