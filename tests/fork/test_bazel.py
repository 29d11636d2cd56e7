"""Bazel builds the patched tree, with stand-ins for upstream's targets and our own targets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fork import upstream_tree as upstream

ROOT = Path(__file__).resolve().parents[2]
HOOKED = "//tensorflow_serving/servables/tensorflow:predict_util"
OURS = ("//serving_patches/...", "@org_tensorflow//tf_patches/...")
Bazel = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The patched miniature tree."""
    directory = tmp_path_factory.mktemp("fork")
    source = upstream.make(directory / "upstream")
    command = [sys.executable, "-m", "fork", "--serving", source, "--tree", directory / "tree"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return directory / "tree"


@pytest.fixture(scope="module")
def bazel(tree: Path) -> Iterator[Bazel]:
    """A function that runs Bazel in the tree."""
    if not shutil.which("bazel"):
        pytest.skip("no bazel: `make bazel` installs it")
    environment = {**os.environ, "COLCAST_PYTHON": sys.executable}

    def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = ["--jobs=2", "--noshow_progress", "--build_tag_filters=", "--test_tag_filters="]
        return subprocess.run(
            [ROOT / "tools" / "bazel", command, *(options if arguments else []), *arguments],
            cwd=tree, env=environment, capture_output=True, text=True,
        )  # fmt: skip

    yield run
    run("shutdown")


def test_every_label_exists_and_may_be_used(bazel: Bazel):
    done = bazel("build", "--nobuild", HOOKED, *OURS)
    assert done.returncode == 0, done.stderr


def test_the_hooked_library_expands_what_came_once(bazel: Bazel):
    done = bazel("test", "//serving_patches:hook_test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 test passes" in done.stdout
