"""The release notes and the bill of materials."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

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
    """Files with a release's names; only names and checksums matter here."""
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


@pytest.mark.parametrize(
    ("package", "how"),
    [
        ("libssl-dev", "linked statically"),
        ("libnghttp2-dev", "linked statically"),
        ("libprotobuf-dev", "linked statically"),
        ("libabsl-dev", "linked statically"),
        ("libjemalloc-dev", "linked statically"),
        ("zlib1g-dev", "linked statically"),
        ("libboost1.74-dev", "headers compiled in"),
        ("rapidjson-dev", "headers compiled in"),
    ],
)
def test_debians_libraries_in_the_server_are_listed_with_their_versions(
    bill: dict[str, Any], package: str, how: str
) -> None:
    query = ["dpkg-query", "-W", "-f=${Version}", package]
    installed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
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
