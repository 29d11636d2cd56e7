"""The fork tool on a miniature upstream tree: its changes and its refusals."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fork import upstream_tree as upstream
from tests.fork.upstream_tree import ROOT

Tool = Callable[..., subprocess.CompletedProcess[str]]


def snapshot(tree: Path) -> dict[str, tuple[bytes, int]]:
    files = (p for p in tree.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(p.relative_to(tree)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def contents(tree: Path) -> dict[str, bytes]:
    return {path: content for path, (content, _) in snapshot(tree).items()}


def passed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.fixture
def fork(tmp_path: Path) -> Tool:
    """A function that runs the tool on `tmp_path/tree`."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fork", "--tree", tmp_path / "tree", *arguments]
        return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True)

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An upstream directory without a git history."""
    return upstream.make(tmp_path / "upstream")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tmp_path / "tree"


def test_a_fork_has_three_changed_lines_our_package_and_a_patch_for_tensorflow(
    fork: Tool, source: Path, tree: Path, tmp_path: Path
):
    passed(fork("--serving", source))
    old = (source / upstream.PREDICT_UTIL).read_text().splitlines()
    new = (tree / upstream.PREDICT_UTIL).read_text().splitlines()
    assert new[16] == '#include "serving_patches/expand_inputs.h"'
    call = "colcast::ExpandedInputValues(signature, request.inputs(), *inputs));"
    assert new[127].strip() == call
    assert [*new[:16], *new[17:127], *new[128:]] == [*old[:126], *old[127:]]
    old = (source / upstream.BUILD).read_text().splitlines()
    new = (tree / upstream.BUILD).read_text().splitlines()
    assert new[525] == '        "//serving_patches:expand_inputs",'
    assert [*new[:525], *new[526:]] == old

    sources = {p.name: p.read_text() for p in (ROOT / "serving_patches").glob("*.cc")}
    del sources["expansion_rule_benchmark.cc"]  # built only by CMake
    assert {p.name: p.read_text() for p in (tree / "serving_patches").glob("*.cc")} == sources
    build = (tree / "serving_patches" / "BUILD").read_text()
    assert '"@org_tensorflow//tf_patches:repeat_row"' in build
    assert '"//tf_patches' not in build
    assert not (tree / "serving_patches" / "CMakeLists.txt").exists()

    before = (source / upstream.TENSORFLOW_PATCH).read_text()
    after = (tree / upstream.TENSORFLOW_PATCH).read_text()
    assert after.startswith(before)
    ours = after.removeprefix(before)
    headers = ("diff --git a/tf_patches/", "new file mode", "--- /dev/null", "+++ b/tf_patches/")
    for line in ours.splitlines():
        assert line.startswith(("+", "@@ -0,0 +1,", *headers)), line
    subprocess.run(["git", "apply"], input=ours, text=True, cwd=tmp_path, check=True)
    for name in ("BUILD", "repeat_row.h", "repeat_row.cc", "repeat_row_test.cc"):
        expected = (ROOT / "tf_patches" / name).read_text()
        assert (tmp_path / "tf_patches" / name).read_text() == expected


def test_a_second_run_changes_nothing(fork: Tool, source: Path, tree: Path):
    passed(fork("--serving", source))
    before = snapshot(tree)
    again = passed(fork("--serving", source))
    assert snapshot(tree) == before
    assert "written" not in again


def test_a_newer_version_of_our_files_replaces_the_older(fork: Tool, source: Path, tree: Path):
    passed(fork("--serving", source))
    wanted = contents(tree)
    (tree / "serving_patches" / "expansion_rule.cc").write_text("an older version\n")
    (tree / "serving_patches" / "renamed_since.cc").write_text("stale\n")
    patches = tree / upstream.TENSORFLOW_PATCH
    patches.write_text(re.sub(r"^\+#include.*\n", "", patches.read_text(), flags=re.M))
    passed(fork("--serving", source))
    assert contents(tree) == wanted


def bare_clone(source: Path) -> Path:
    bare: Path = source.with_name("upstream.git")
    upstream.git(source, "clone", "--quiet", "--bare", str(source), str(bare))
    return bare


def test_a_check_needs_only_the_objects_of_the_changed_files_and_leaves_nothing(
    fork: Tool, source: Path, tree: Path
):
    (source / "other").write_text("content that the snapshot lacks\n")
    commit = upstream.commit(source)
    blob = upstream.git(source, "rev-parse", f"{commit}:other")
    bare = bare_clone(source)
    (bare / "objects" / blob[:2] / blob[2:]).unlink()
    assert "every hunk fits" in passed(fork("--serving", bare, "--commit", commit, "--check"))
    assert not tree.exists()
    refused(fork("--serving", bare, "--commit", commit), f"commit {commit} is not available")


def test_a_clone_is_taken_at_the_commit_whatever_is_checked_out(
    fork: Tool, source: Path, tree: Path
):
    commit = upstream.commit(source)
    (source / "later").write_text("work of a later day\n")
    upstream.git(source, "add", "later")
    upstream.git(source, "commit", "--quiet", "--message=later")
    for clone in (source, bare_clone(source)):
        passed(fork("--serving", clone, "--commit", commit))
        assert not (tree / "later").exists()
        assert upstream.git(tree, "rev-parse", "HEAD") == commit
        shutil.rmtree(tree)


def test_a_clone_without_the_commit_is_refused(fork: Tool, source: Path, tree: Path):
    upstream.commit(source)
    wanted = "bc7e9d2b9a419294c4526e293c2df8727b0d3116"
    for clone in (source, bare_clone(source)):
        refused(fork("--serving", clone), wanted, "does not have commit", "fatal: ")
        assert not tree.exists()


def test_a_tree_at_another_commit_is_refused(fork: Tool, source: Path, tree: Path):
    commit = upstream.commit(source)
    passed(fork("--serving", source, "--commit", commit))
    before = snapshot(tree)
    refused(fork("--serving", source), "expected TF Serving 2.20.0", commit)
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        ("PREDICT_UTIL", "// stand-in 100\n", "\n\n\n\n", "it is at [130]"),
        ("PREDICT_UTIL", "GetInputValues(signature,", "ParseInputs(", "it is at no line"),
        ("PREDICT_UTIL", "// stand-in 130", "{CALL}", "it is at [127, 130]"),
        ("BUILD", "predict_util", "predict_utilities", "it is at no line"),
        ("BUILD", '    deps = [\n        ":util",', "", "it is at no line"),
    ],
)
def test_a_hunk_that_does_not_fit_exactly_once_at_its_line_is_refused_and_nothing_is_written(
    fork: Tool, source: Path, tree: Path,
    path: str, old: str, new: str, message: str,
):  # fmt: skip
    file = getattr(upstream, path)
    text = (source / file).read_text()
    assert old in text
    (source / file).write_text(text.replace(old, new.format(CALL=upstream.CALL)))
    line = {"PREDICT_UTIL": 127, "BUILD": 519}[path]
    refused(fork("--serving", source), file, "does not fit", message, f"expected at line {line}: ")
    assert contents(tree) == contents(source)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    patch =", "    # patch =", "patch = '//third_party/tensorflow:tensorflow.patch'"),
        (upstream.TENSORFLOW_COMMIT, "0123456789", "found 0123456789"),
    ],
)
def test_another_tensorflow_is_refused(fork: Tool, source: Path, old: str, new: str, message: str):
    path = source / "WORKSPACE"
    path.write_text(path.read_text().replace(old, new))
    refused(fork("--serving", source), message)


@pytest.fixture
def tensorflow(tmp_path: Path) -> Path:
    """A directory that looks like TensorFlow's tree, without a git history."""
    tree = tmp_path / "tensorflow"
    (tree / "tensorflow" / "core").mkdir(parents=True)
    return tree


def test_a_tensorflow_tree_is_checked_and_stays_as_it_is(
    fork: Tool, source: Path, tensorflow: Path
):
    given = ("--serving", source, "--tensorflow", tensorflow)
    done = passed(fork(*given, "--check"))
    assert f"the patch fits {tensorflow}" in done
    assert snapshot(tensorflow) == {}
    (tensorflow / "tf_patches").mkdir()
    refused(fork(*given), "tf_patches/")
    (tensorflow / "tf_patches").rmdir()
    (tensorflow / "README").touch()
    found = upstream.commit(tensorflow)
    refused(fork(*given), upstream.TENSORFLOW_COMMIT, found)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--check", "--tensorflow", "NO_SUCH_FOLDER"], "NO_SUCH_FOLDER: no"),
        (["--check", "--tensorflow", ""], ".: no"),
        (["--serving", "does/not/exist"], "does/not/exist"),
        (["--serving", "file:///does/not/exist"], "file:///does/not/exist"),
    ],
)
def test_a_missing_folder_is_named(
    fork: Tool, source: Path, tree: Path, given: list[str], named: str
):
    refused(fork("--serving", source, *given), named)
    assert not tree.exists()
