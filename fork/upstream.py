"""Fetches upstream trees and verifies that they are the supported release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fork.hooks import ForkError
from fork.release import Release


def git(*arguments: str, where: Path) -> str:
    """Runs git and returns what it printed.

    Raises:
        ForkError: git failed; the message contains its output.
    """
    # Keeps git from taking a tree under build/ for a part of this repository.
    environment = {
        **os.environ,
        "GIT_CEILING_DIRECTORIES": str(where.resolve().parent),
        "GIT_NO_LAZY_FETCH": "1",
    }
    environment.pop("GIT_DIR", None)
    done = subprocess.run(
        ["git", "-C", str(where), *arguments], capture_output=True, text=True, env=environment
    )
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip() or "(no output)"
        raise ForkError(f"git {arguments[0]} in {where}: {message}")
    return done.stdout if arguments[0] == "show" else done.stdout.strip()


def head(tree: Path) -> str:
    """The commit checked out in `tree`; empty for a directory without a git history."""
    return git("rev-parse", "HEAD", where=tree) if (tree / ".git").exists() else ""


def is_bare(folder: Path) -> bool:
    """Whether `folder` is a bare git repository."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def fetch(source: str, tree: Path, commit: str) -> None:
    """Checks out `commit` of `source` as the new folder `tree`.

    Args:
        source: A git URL, a local clone, bare or not, or a directory without a history.
        tree: The folder to make; it must not exist.
        commit: The commit to check out; a directory without a history must already have its
            content.

    Raises:
        ForkError: The source does not exist or lacks the commit.
    """
    local = Path(source)
    if local.is_dir() and not is_bare(local) and not (local / ".git").exists():
        shutil.copytree(local, tree, symlinks=True)
        return
    if local.is_dir():
        try:
            git("cat-file", "-e", f"{commit}^{{commit}}", where=local)
        except ForkError as error:
            raise ForkError(f"{source}: does not have commit {commit}: {error}") from None
    elif "://" not in source and "@" not in source:
        raise ForkError(f"{source}: no such directory")
    tree.mkdir(parents=True)
    try:
        git("init", "--quiet", where=tree)
        git("fetch", "--quiet", "--depth=1", str(local.resolve()) if local.is_dir() else source,
            commit, where=tree)  # fmt: skip
        git("checkout", "--quiet", "--detach", commit, where=tree)
    except ForkError as error:
        shutil.rmtree(tree)
        raise ForkError(f"{source}: commit {commit} is not available: {error}") from None


def fetch_files(source: str, tree: Path, commit: str, paths: Sequence[str]) -> None:
    """Makes `tree` from a few files of `source`; other arguments are those of `fetch`.

    A local repository needs only the objects of these files, so an incomplete copy will do.
    """
    local = Path(source)
    if not local.is_dir() or not (is_bare(local) or (local / ".git").exists()):
        fetch(source, tree, commit)
        return
    for path in paths:
        try:
            text = git("show", f"{commit}:{path}", where=local)
        except ForkError as error:
            shutil.rmtree(tree, ignore_errors=True)
            raise ForkError(f"{source}: does not have {path} at commit {commit}: {error}") from None
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(text.encode())


def folders(repository: Path, commit: str, *paths: str) -> list[str]:
    """Those of `paths` that a commit of a repository has; reads no files.

    Raises:
        ForkError: The repository lacks the commit.
    """
    try:
        return git("ls-tree", "--name-only", commit, *paths, where=repository).split()
    except ForkError as error:
        raise ForkError(f"{repository}: does not have commit {commit}: {error}") from None


def verify(tree: Path, release: Release) -> str:
    """Checks that `tree` is the release's TF Serving.

    Returns:
        A description of how it was verified.

    Raises:
        ForkError: It is not; the message says what was expected and what was found.
    """
    workspace = tree / "WORKSPACE"
    if not workspace.is_file():
        raise ForkError(f"{tree}: not a TF Serving tree: it has no WORKSPACE")
    commit = head(tree)
    if commit and commit != release.serving_commit:
        raise ForkError(
            f"{tree}: expected TF Serving {release.version}, commit {release.serving_commit}, "
            f"found commit {commit}"
        )
    archive = re.search(r"tensorflow_http_archive\((.*?)^\)", workspace.read_text(), re.S | re.M)
    attributes = dict(re.findall(r'^ *(\w+) = "(.*?)"', archive[1] if archive else "", re.M))
    pinned = attributes.get("git_commit", "none")
    if pinned != release.tensorflow_commit:
        raise ForkError(
            f"{tree}: expected TF Serving {release.version}, whose WORKSPACE pins TensorFlow "
            f"{release.tensorflow_commit}, found {pinned}"
        )
    label = "//{}:{}".format(*release.tensorflow_patch.rsplit("/", 1))
    if attributes.get("patch") != label:
        raise ForkError(
            f"{tree}/WORKSPACE: expected patch = {label!r} for TensorFlow, "
            f"found {attributes.get('patch', 'none')!r}"
        )
    return f"commit {commit}" if commit else f"no history; pins TensorFlow {pinned}"
