"""Dockerfile and systemd unit, checked by linters and against the server."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from colcast.server import find_executable
from dockerfile_parse import DockerfileParser

from .conftest import server_flags

REPOSITORY = Path(__file__).resolve().parents[2]
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
    # The executable of this machine replaces the installed one.
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
    compared = (DOCS / "compatibility.md").read_text()  # flags without effect here
    missing = {
        flag for flag in flags if f"--{flag}" not in documented and f"`{flag}`" not in compared
    }
    assert missing == set()
