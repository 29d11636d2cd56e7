"""The fork tool on a miniature upstream tree: its changes and its refusals."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[..., subprocess.CompletedProcess[str]]


def snapshot(tree: Path) -> dict[str, tuple[bytes, int]]:
    files = (p for p in tree.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(p.relative_to(tree)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


@pytest.fixture
def source(tmp_path: Path, upstream: ModuleType) -> Path:
    """An upstream directory without a git history."""
    tree: Path = upstream.make(tmp_path / "upstream")
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tmp_path / "tree"


def test_three_lines_change_in_upstreams_files(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    done = fork("--serving", source)
    assert done.returncode == 0, done.stderr

    old = (source / upstream.PREDICT_UTIL).read_text().splitlines()
    new = (tree / upstream.PREDICT_UTIL).read_text().splitlines()
    assert new[16] == '#include "serving_patches/expand_inputs.h"'
    assert new[127].strip() == (
        "colcast::ExpandedInputValues(signature, request.inputs(), *inputs));"
    )
    assert [*new[:16], *new[17:127], *new[128:]] == [*old[:126], *old[127:]]

    old = (source / upstream.BUILD).read_text().splitlines()
    new = (tree / upstream.BUILD).read_text().splitlines()
    assert new[525] == '        "//serving_patches:expand_inputs",'
    assert [*new[:525], *new[526:]] == old


def test_serving_patches_become_a_package_that_uses_tensorflows_row_repeater(
    fork: Tool, source: Path, tree: Path
) -> None:
    assert fork("--serving", source).returncode == 0
    sources = {p.name: p.read_text() for p in (ROOT / "serving_patches").glob("*.cc")}
    del sources["expansion_rule_benchmark.cc"]  # built only by CMake
    assert {p.name: p.read_text() for p in (tree / "serving_patches").glob("*.cc")} == sources
    build = (tree / "serving_patches" / "BUILD").read_text()
    assert '"@org_tensorflow//tf_patches:repeat_row"' in build
    assert '"//tf_patches' not in build
    assert not (tree / "serving_patches" / "CMakeLists.txt").exists()


def test_the_patch_for_tensorflow_adds_our_files_and_nothing_else(
    fork: Tool, source: Path, tree: Path, tmp_path: Path, upstream: ModuleType
) -> None:
    assert fork("--serving", source).returncode == 0
    before = (source / upstream.TENSORFLOW_PATCH).read_text()
    after = (tree / upstream.TENSORFLOW_PATCH).read_text()
    assert after.startswith(before)
    ours = after.removeprefix(before)
    headers = ("diff --git a/tf_patches/", "new file mode", "--- /dev/null", "+++ b/tf_patches/")
    for line in ours.splitlines():
        assert line.startswith(("+", "@@ -0,0 +1,", *headers)), line

    tensorflow = tmp_path / "tensorflow"
    tensorflow.mkdir()
    subprocess.run(["git", "apply"], input=ours, text=True, cwd=tensorflow, check=True)
    for name in ("BUILD", "repeat_row.h", "repeat_row.cc", "repeat_row_test.cc"):
        expected = (ROOT / "tf_patches" / name).read_text()
        assert (tensorflow / "tf_patches" / name).read_text() == expected


def test_a_second_run_changes_nothing(fork: Tool, source: Path, tree: Path) -> None:
    assert fork("--serving", source).returncode == 0
    before = snapshot(tree)
    again = fork("--serving", source)
    assert again.returncode == 0
    assert snapshot(tree) == before
    assert "written" not in again.stdout


def test_a_newer_version_of_our_files_replaces_the_older(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    assert fork("--serving", source).returncode == 0
    wanted = {path: content for path, (content, _) in snapshot(tree).items()}
    (tree / "serving_patches" / "expansion_rule.cc").write_text("an older version\n")
    (tree / "serving_patches" / "renamed_since.cc").write_text("stale\n")
    patches = tree / upstream.TENSORFLOW_PATCH
    patches.write_text(re.sub(r"^\+#include.*\n", "", patches.read_text(), flags=re.M))
    assert fork("--serving", source).returncode == 0
    assert {path: content for path, (content, _) in snapshot(tree).items()} == wanted


def test_a_clone_is_taken_at_the_commit_whatever_is_checked_out(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    commit = upstream.commit(source)
    (source / "later").write_text("work of a later day\n")
    upstream.git(source, "add", "later")
    upstream.git(source, "commit", "--quiet", "--message=later")
    done = fork("--serving", source, "--commit", commit)
    assert done.returncode == 0, done.stderr
    assert not (tree / "later").exists()
    assert upstream.git(tree, "rev-parse", "HEAD") == commit


def bare_clone(source: Path, upstream: ModuleType) -> Path:
    bare: Path = source.with_name("upstream.git")
    upstream.git(source, "clone", "--quiet", "--bare", str(source), str(bare))
    return bare


def test_a_check_needs_only_the_objects_of_the_changed_files(
    fork: Tool, source: Path, upstream: ModuleType
) -> None:
    (source / "other").write_text("content that the snapshot lacks\n")
    commit = upstream.commit(source)
    blob = upstream.git(source, "rev-parse", f"{commit}:other")
    bare = bare_clone(source, upstream)
    (bare / "objects" / blob[:2] / blob[2:]).unlink()
    done = fork("--serving", bare, "--commit", commit, "--check")
    assert done.returncode == 0, done.stderr
    refused(fork("--serving", bare, "--commit", commit), f"commit {commit} is not available")


def test_a_bare_clone_is_a_source_like_any_other(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    commit = upstream.commit(source)
    bare = bare_clone(source, upstream)
    done = fork("--serving", bare, "--commit", commit)
    assert done.returncode == 0, done.stderr
    assert upstream.git(tree, "rev-parse", "HEAD") == commit


def test_check_does_everything_and_leaves_nothing(fork: Tool, source: Path, tree: Path) -> None:
    done = fork("--serving", source, "--check")
    assert done.returncode == 0, done.stderr
    assert "every hunk fits" in done.stdout
    assert not tree.exists()


def refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_a_clone_without_the_commit_is_refused(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    upstream.commit(source)
    wanted = "bc7e9d2b9a419294c4526e293c2df8727b0d3116"
    for clone in (source, bare_clone(source, upstream)):
        refused(fork("--serving", clone), wanted, "does not have commit", "fatal: ")
        assert not tree.exists()


def test_a_tree_at_another_commit_is_refused(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType
) -> None:
    commit = upstream.commit(source)
    assert fork("--serving", source, "--commit", commit).returncode == 0
    before = snapshot(tree)
    refused(fork("--serving", source), "expected TF Serving 2.20.0", commit)
    assert snapshot(tree) == before


def test_another_tensorflow_is_refused(fork: Tool, tmp_path: Path, upstream: ModuleType) -> None:
    other = "0123456789abcdef0123456789abcdef01234567"
    source = upstream.make(tmp_path / "upstream", tensorflow=other)
    refused(fork("--serving", source), upstream.TENSORFLOW_COMMIT, f"found {other}")


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        ("PREDICT_UTIL", "// stand-in 100\n", "\n\n\n\n", "it is at [130]"),
        ("PREDICT_UTIL", "GetInputValues(signature,", "ParseInputs(", "it is at no line"),
        ("PREDICT_UTIL", "// stand-in 130", "{CALL}", "it is at [127, 130]"),
        ("BUILD", "predict_util", "predict_utilities", "it is at no line"),
        ("BUILD", "# stand-in 517\n", "\n\n\n", "it is at [521]"),
        ("BUILD", '    deps = [\n        ":util",', "", "it is at no line"),
    ],
)
def test_a_hunk_that_does_not_fit_exactly_once_at_its_line_is_refused_and_nothing_is_written(
    fork: Tool, source: Path, tree: Path, upstream: ModuleType,
    path: str, old: str, new: str, message: str,
) -> None:  # fmt: skip
    file = getattr(upstream, path)
    text = (source / file).read_text()
    assert old in text
    (source / file).write_text(text.replace(old, new.format(CALL=upstream.CALL)))
    line = {"PREDICT_UTIL": 127, "BUILD": 519}[path]
    refused(fork("--serving", source), file, "does not fit", message, f"expected at line {line}: ")
    assert {p: c for p, (c, _) in snapshot(tree).items()} == {
        p: c for p, (c, _) in snapshot(source).items()
    }


def test_a_tensorflow_that_is_not_patched_through_the_attribute_is_refused(
    fork: Tool, source: Path
) -> None:
    path = source / "WORKSPACE"
    path.write_text(path.read_text().replace("    patch =", "    # patch ="))
    refused(fork("--serving", source), "patch = '//third_party/tensorflow:tensorflow.patch'")


@pytest.fixture
def tensorflow(tmp_path: Path) -> Path:
    """A directory that looks like TensorFlow's tree, without a git history."""
    tree = tmp_path / "tensorflow"
    (tree / "tensorflow" / "core").mkdir(parents=True)
    return tree


def test_a_tensorflow_tree_is_checked_and_stays_as_it_is(
    fork: Tool, source: Path, tensorflow: Path
) -> None:
    done = fork("--serving", source, "--tensorflow", tensorflow, "--check")
    assert done.returncode == 0, done.stderr
    assert f"the patch fits {tensorflow}" in done.stdout
    assert snapshot(tensorflow) == {}


def test_a_tensorflow_tree_with_such_a_folder_is_refused(
    fork: Tool, source: Path, tensorflow: Path
) -> None:
    (tensorflow / "tf_patches").mkdir()
    refused(fork("--serving", source, "--tensorflow", tensorflow), "tf_patches/")


def test_a_tensorflow_tree_at_another_commit_is_refused(
    fork: Tool, source: Path, tensorflow: Path, upstream: ModuleType
) -> None:
    (tensorflow / "README").touch()
    found = upstream.commit(tensorflow)
    refused(
        fork("--serving", source, "--tensorflow", tensorflow), upstream.TENSORFLOW_COMMIT, found
    )


@pytest.mark.parametrize("missing", ["NO_SUCH_FOLDER", ""])
def test_a_missing_tensorflow_tree_is_named(fork: Tool, source: Path, missing: str) -> None:
    done = fork("--serving", source, "--check", "--tensorflow", missing)
    refused(done, f"{missing or '.'}: no")


@pytest.mark.parametrize("missing", ["does/not/exist", "file:///does/not/exist"])
def test_a_missing_source_is_named(fork: Tool, tree: Path, missing: str) -> None:
    refused(fork("--serving", missing), missing)
    assert not tree.exists()
