"""Releases: wheels, notes, bill of materials, matching version numbers, files in deploy/."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from colcast.server import find_executable
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from dockerfile_parse import DockerfileParser

from .conftest import server_flags

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = REPOSITORY / "scripts" / "release"
EPOCH = 1_700_000_000
CHANGELOG = """# Changelog

## [Unreleased]
{unreleased}
## [1.1.0] - 2026-01-02

### Added

- More.

## [1.0.0] - 2026-01-01

- All.
"""


@pytest.fixture(scope="module")
def notes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes", SCRIPTS / "notes.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_the_versions_section(notes: ModuleType) -> None:
    changelog = CHANGELOG.format(unreleased="")
    assert notes.notes(changelog, "1.1.0") == "# colcast 1.1.0\n\n### Added\n\n- More.\n"
    assert notes.notes(changelog, "1.0.0") == "# colcast 1.0.0\n\n- All.\n"


def test_notes_of_an_unknown_version_say_so(notes: ModuleType) -> None:
    text = notes.notes(CHANGELOG.format(unreleased="\n- Not yet.\n"), "1.1.0")
    assert text == "# colcast after 1.1.0: a trial, no release\n\n- Not yet.\n"


def test_a_version_without_a_section_is_refused(notes: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"no section \[2\.0\.0\]"):
        notes.notes(CHANGELOG.format(unreleased=""), "2.0.0")


def bill_of(folder: Path) -> str:
    command = [sys.executable, SCRIPTS / "sbom.py", folder]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for a release's files; only names and checksums matter here."""
    made = tmp_path_factory.mktemp("release")
    (made / "colcast-1.1.0-py3-none-any.whl").write_bytes(b"a")
    (made / "colcast_server-1.1.0-py3-none-manylinux_2_35_x86_64.whl").write_bytes(b"b")
    (made / "colcast-server-1.1.0.oci.tar").write_bytes(b"c")
    (made / "colcast-server-1.1.0.oci.packages").write_text("libc6\t2.36-9\tamd64\n")
    return made


@pytest.fixture(scope="module")
def bill(folder: Path) -> dict[str, Any]:
    text = bill_of(folder)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert bill_of(folder) == text
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def named(bill: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (one for one in bill["components"] if one["name"] == name)
    return found


def needs(bill: dict[str, Any], reference: str) -> set[str]:
    (found,) = (one for one in bill["dependencies"] if one["ref"] == reference)
    return set(found.get("dependsOn", ()))


def linkage(component: dict[str, Any]) -> str:
    (value,) = (one["value"] for one in component["properties"])
    return str(value)


def dpkg(field: str, package: str) -> str:
    query = ["dpkg-query", "-W", f"-f={field}", package]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("package", "how"),
    [
        ("libssl-dev", "linked statically"),
        ("libnghttp2-dev", "linked statically"),
        ("libprotobuf-dev", "linked statically"),
        ("libabsl-dev", "linked statically"),
        ("libjemalloc-dev", "linked statically"),
        ("zlib1g-dev", "linked statically"),
        ("libboost-dev", "headers compiled in"),
        ("rapidjson-dev", "headers compiled in"),
    ],
)
def test_debians_libraries_in_the_server_are_listed_with_their_versions(
    bill: dict[str, Any], package: str, how: str
) -> None:
    if package == "libboost-dev":  # it only requires a package whose name contains Boost's version
        package = dpkg("${Depends}", package)
    installed = dpkg("${Version}", package)
    component = named(bill, package)
    assert component["version"] == installed
    assert linkage(component) == how
    server = named(bill, "colcast-server")["bom-ref"]
    assert component["bom-ref"] in needs(bill, server)


def test_each_wheel_has_its_sum_and_what_it_requires(bill: dict[str, Any]) -> None:
    server, pure = named(bill, "colcast-server"), named(bill, "colcast")
    assert server["hashes"][0]["alg"] == "SHA-256"
    assert not any("tensorflow" in one for one in needs(bill, server["bom-ref"]))
    required = {one.partition("@")[0] for one in needs(bill, pure["bom-ref"])}
    assert {"pkg:pypi/numpy", "pkg:pypi/grpcio", "pkg:pypi/protobuf"} <= required
    assert "pkg:pypi/tensorflow-cpu" not in required


def test_the_image_has_the_server_and_debians_packages(bill: dict[str, Any]) -> None:
    image = needs(bill, "colcast-server-1.1.0.oci.tar")
    assert named(bill, "tensorflow-cpu")["bom-ref"] in image
    assert named(bill, "colcast-server")["bom-ref"] in image
    assert named(bill, "libc6")["bom-ref"] in image


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


DEPLOY = REPOSITORY / "deploy"


def known_flags() -> set[str]:
    """The built server's flags, --flagfile included."""
    return server_flags() | {"flagfile"}


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--(\w+)=", text))


def test_the_dockerfile_passes_the_linter():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_builds_the_runtime_layout_and_runs_it_as_nobody():
    parser = DockerfileParser(fileobj=(DEPLOY / "Dockerfile").open("rb"))
    steps = [(step["instruction"], step["value"]) for step in parser.structure]
    kinds = [kind for kind, _ in steps]
    values = dict(reversed(steps))
    assert kinds.count("FROM") == 2
    runs = [value for kind, value in steps if kind == "RUN"]
    assert "deploy/assemble_runtime.sh build/server /runtime" in runs[-1]
    last = len(kinds) - 1 - kinds[::-1].index("FROM")
    assert all(kind != "RUN" for kind in kinds[last:])
    assert ("COPY", "--from=build /runtime/ /") in steps[last:]
    assert values["USER"] == "65534:65534"
    assert "HEALTHCHECK" in kinds[last:]


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
    assert flags_in(text) <= known_flags()


DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_flag_is_documented():
    flags = server_flags()
    assert len(flags) > 30
    documented = (DOCS / "operations.md").read_text()
    compared = (DOCS / "compatibility.md").read_text()  # lists flags that have no effect here
    missing = {
        flag for flag in flags if f"--{flag}" not in documented and f"`{flag}`" not in compared
    }
    assert missing == set()
