"""The command line: python3 -m fork."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

from fork import hooks, new_files, upstream
from fork.hooks import ForkError
from fork.release import RELEASE, Release

BAZEL = "bazel build -c opt //tensorflow_serving/model_servers:tensorflow_model_server"


def patch(tree: Path, release: Release) -> bool:
    """Adds both patch folders and the hooks to a verified tree, and prints what it did.

    Returns:
        Whether anything changed.

    Raises:
        ForkError: A hook or the patch does not fit; the tree is unchanged.
    """
    patches = release.tensorflow_patch
    if not (tree / patches).is_file():
        raise ForkError(f"{tree / patches}: no such file; it is needed to patch TensorFlow")
    wanted = {
        **hooks.patched(tree, release.hooks),
        **new_files.package(new_files.SERVING),
        patches: new_files.registered((tree / patches).read_bytes().decode(), patches),
    }
    changed = False
    for path, text in wanted.items():
        target = tree / path
        same = target.is_file() and target.read_bytes() == text.encode()
        print(f"  {'unchanged' if same else 'written':15} {path}")
        if not same:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(text.encode())
            changed = True
    for stale in (tree / new_files.SERVING).iterdir():
        if f"{new_files.SERVING}/{stale.name}" not in wanted:
            print(f"  {'removed':15} {new_files.SERVING}/{stale.name}")
            stale.unlink()
            changed = True
    return changed


def check_tensorflow(place: Path, release: Release) -> None:
    """Checks that the patch for TensorFlow, which only adds files, fits a tree or a bare clone.

    Raises:
        ForkError: It is not TensorFlow, is another release, or has our folder already.
    """
    wanted, ours, commit = "tensorflow/core", new_files.TENSORFLOW, release.tensorflow_commit
    if upstream.is_bare(place):
        found, head = upstream.folders(place, commit, wanted, ours), commit
    else:
        found = [path for path in (wanted, ours) if (place / path).is_dir()]
        head = upstream.head(place)
    if found != [wanted]:
        there = " and ".join(found) or "neither"
        raise ForkError(f"{place}: not TensorFlow: wanted {wanted}/ and no {ours}/, found {there}")
    if head not in ("", commit):
        raise ForkError(f"{place}: wanted TensorFlow {commit}, found {head}")
    print(f"TensorFlow: the patch fits {place}")


def prepare(source: str, tree: Path, tensorflow: str | None, release: Release) -> None:
    """Fetches or reuses `tree`, then verifies and patches it."""
    if not tree.exists():
        print(f"{source} -> {tree}")
        upstream.fetch(source, tree, release.serving_commit)
    verify_and_patch(tree, tensorflow, release)


def verify_and_patch(tree: Path, tensorflow: str | None, release: Release) -> None:
    """Patches a tree if it and TensorFlow are the release."""
    print(f"TF Serving {release.version}: {upstream.verify(tree, release)}")
    if tensorflow is not None:
        check_tensorflow(Path(tensorflow), release)
    patch(tree, release)


def check(source: str, tensorflow: str | None, release: Release) -> None:
    """Patches a temporary tree, and checks that patching it again changes nothing."""
    files = ["WORKSPACE", release.tensorflow_patch, *{hook.path for hook in release.hooks}]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "serving"
        upstream.fetch_files(source, tree, release.serving_commit, files)
        verify_and_patch(tree, tensorflow, release)
        print("again, which must change nothing:")
        if patch(tree, release):
            raise ForkError("the second run changed the tree")


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m fork", description=new_files.__doc__)
    parser.add_argument("--serving", default=RELEASE.serving_url, metavar="SOURCE",
                        help="git URL, local clone or directory of TF Serving")  # fmt: skip
    parser.add_argument("--tensorflow", metavar="DIRECTORY",
                        help="also check this TensorFlow tree or bare clone")  # fmt: skip
    parser.add_argument("--tree", type=Path, default=Path("build/fork/serving"),
                        help="the tree to make and patch, default %(default)s")  # fmt: skip
    parser.add_argument("--commit", default=RELEASE.serving_commit,
                        help="another commit of SOURCE; every hunk must still fit")  # fmt: skip
    parser.add_argument("--check", action="store_true",
                        help="prepare and check a tree, then delete it")  # fmt: skip
    options = parser.parse_args()
    release = dataclasses.replace(RELEASE, serving_commit=options.commit)
    try:
        if options.check:
            check(options.serving, options.tensorflow, release)
            print("fork: every hunk fits; only the Bazel build remains")
        else:
            prepare(options.serving, options.tree, options.tensorflow, release)
            print(f"\nBuild it with Bazel 7.4.1 or later:\n  (cd {options.tree} && {BAZEL})")
    except ForkError as error:
        print(f"fork: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
