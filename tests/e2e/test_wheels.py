"""Both wheels in an empty environment, installed and used by an unprivileged user."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
READY = re.compile(r"ready: gRPC on ([\d.:]+)")
USER = {"user_age": 44.0, "user_words": ["red", "blue"]}
ITEMS = [{"item_id": n, "item_price": [n / 3, 1.0]} for n in range(20)]


def reachable_python() -> str:
    """A Python interpreter of this version that every user may run."""
    program = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        try:
            if run_as_nobody([candidate, "-c", program]).returncode == 0:
                return candidate
        except PermissionError:
            continue
    pytest.skip(f"no Python {sys.version_info[:2]} that every user may run")


def run_as_nobody(command: list[object], **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a command, as another user if this one is root."""
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **unprivileged(), **options
    )  # type: ignore[call-overload,no-any-return]


def unprivileged() -> dict[str, object]:
    root = os.getuid() == 0
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}


def requirements(names: list[str]) -> set[str]:
    """All distributions that `names` require, directly or not; a name may have extras."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or name == "wheel":  # not in the lock file, because nothing imports it
            continue
        found.add(name)
        for line in importlib.metadata.requires(name) or []:
            requirement = Requirement(line)
            environments = [{"extra": extra} for extra in wanted.extras] or [{"extra": ""}]
            marker = requirement.marker
            if marker is None or any(marker.evaluate(one) for one in environments):
                waiting.append(requirement)
    return found - {"colcast"}


def link_distribution(name: str, site_packages: Path) -> None:
    """Links an installed distribution's files into another environment."""
    distribution = importlib.metadata.distribution(name)
    for file in distribution.files or []:
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or not source.is_file():  # skip scripts
            continue
        target = site_packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A directory that belongs to the unprivileged user."""
    directory = Path(tempfile.mkdtemp(prefix="colcast-wheels-"))
    directory.chmod(0o755)
    if os.getuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    yield directory
    shutil.rmtree(directory)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """A function that runs a program from the wheels' environment, with no other PATH."""
    wheels = home / "wheels"
    build = [ROOT / "scripts" / "wheels.sh", "--all", wheels]
    subprocess.run(build, check=True, capture_output=True)
    environment = home / "env"
    made = run_as_nobody([reachable_python(), "-m", "venv", environment], cwd=home)
    assert made.returncode == 0, made.stdout + made.stderr
    (site_packages,) = environment.glob("lib/python*/site-packages")
    for name in requirements(["colcast[export]", "tensorflow-cpu"]):  # linked, not downloaded
        link_distribution(name, site_packages)

    def run_program(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        done = run_as_nobody(
            [environment / "bin" / name, *arguments],
            cwd=home, env={"PATH": str(environment / "bin"), "HOME": str(home)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    if os.getuid() == 0:
        for folder in [site_packages, *(p for p in site_packages.rglob("*") if p.is_dir())]:
            os.chown(folder, NOBODY, NOBODY)
    run_program("pip", "install", "--no-index", "--no-deps", *wheels.glob("*.whl"))
    return run_program


@pytest.fixture(scope="module")
def exported(run: Run, home: Path) -> Path:
    """A ranker, exported by the installed exporter."""
    program = (
        "import pathlib, sys; from tests.conformance.models import save_ranker_of_examples as save;"
        "save(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, home / "model"]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    run(
        "colcast", "export", "--saved-model", home / "model", "--output", home / "ranker" / "1",
        "--user-features", "user_*", "--late",
    )  # fmt: skip
    return home / "ranker"


def test_the_server_has_an_engine_per_release_and_requires_no_tensorflow(
    run: Run, home: Path
) -> None:
    assert run
    releases = runpy.run_path(str(ROOT / "requirements" / "tensorflow_releases.py"))["RELEASES"]
    (wheel,) = (home / "wheels").glob("colcast_server-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("METADATA"))
    for release in releases:
        assert f"colcast_server/bin/libcolcast_engine-{release}.so" in names
    required = {Requirement(line) for line in re.findall(r"^Requires-Dist: (.*)", metadata, re.M)}
    assert {one.name for one in required} == {"tensorflow-cpu", "tensorflow"}
    for one in required:
        assert one.marker is not None
        assert not one.marker.evaluate({"extra": ""})
        assert all(one.specifier.contains(release) for release in releases)
    assert wheel.stat().st_size < 16_000_000


def test_an_exported_model_is_served_and_ranked(run: Run, home: Path, exported: Path) -> None:
    serve = [
        home / "env" / "bin" / "colcast", "serve", "--host=127.0.0.1", "--port=0",
        "--model_name=ranker", f"--model_base_path={exported}",
    ]  # fmt: skip
    server = subprocess.Popen(
        [str(part) for part in serve],
        stderr=subprocess.PIPE, text=True, env={"HOME": str(home)}, **unprivileged(),
    )  # type: ignore[call-overload]  # fmt: skip
    try:
        log = ""
        while not (ready := READY.search(log)):
            line = server.stderr.readline()
            assert line, log
            log += line
        ranked = run(
            "python", "-c", "import json; from colcast.client import RankingClient as Client;"
            f" client = Client({ready[1]!r}, 'ranker', timeout_seconds=60);"
            f" print(json.dumps(client.rank({USER!r}, {ITEMS!r}).top(5)))",
        )  # fmt: skip
    finally:
        server.terminate()
        server.communicate()
    scores = [score for _, score in json.loads(ranked.stdout)]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
