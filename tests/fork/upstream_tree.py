"""A miniature of TF Serving: the names of its files, our own stand-in lines around the hooks."""

from __future__ import annotations

import subprocess
from pathlib import Path

PREDICT_UTIL = "tensorflow_serving/servables/tensorflow/predict_util.cc"
BUILD = "tensorflow_serving/servables/tensorflow/BUILD"
TENSORFLOW_PATCH = "third_party/tensorflow/tensorflow.patch"
TENSORFLOW_COMMIT = "72fbba3d20f4616d7312b5e2b7f79daf6e82f2fa"

CALL = "      saved_model::GetInputValues(signature, request.inputs(), *inputs));"
INCLUDE = '#include "tensorflow_serving/servables/tensorflow/predict_util.h"'


def filled(lines: dict[int, str], total: int) -> str:
    """A file of `total` lines with `lines` at their numbers and comments elsewhere."""
    return "".join(f"{lines.get(n, f'// stand-in {n}')}\n" for n in range(1, total + 1))


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def make(root: Path, *, tensorflow: str = TENSORFLOW_COMMIT, offset: int = 0) -> Path:
    """Writes the tree; `offset` moves the lines at the hooks down, as another release would."""
    write(
        root,
        "WORKSPACE",
        'workspace(name = "tf_serving")\n'
        "tensorflow_http_archive(\n"
        '    name = "org_tensorflow",\n'
        f'    git_commit = "{tensorflow}",\n'
        '    patch = "//third_party/tensorflow:tensorflow.patch",\n'
        ")\n",
    )
    write(root, PREDICT_UTIL, filled({16: INCLUDE, 127 + offset: CALL}, 200))
    write(
        root,
        BUILD,
        filled(
            {
                400: "    deps = [",  # of another rule
                518: "cc_library(",
                519: '    name = "predict_util",',
                520: "    deps = [",
                521: '        ":util",',
                522: "    ],",
                523: ")",
                530: "    deps = [",  # of yet another rule
            },
            600,
        ),
    )
    write(
        root,
        TENSORFLOW_PATCH,
        "diff --git a/stand_in b/stand_in\n--- a/stand_in\n+++ b/stand_in\n"
        "@@ -1,1 +1,1 @@\n-old\n+new\n",
    )
    return root


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    return subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path) -> str:
    """Makes the tree a repository of one commit, and returns it."""
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=upstream")
    return git(root, "rev-parse", "HEAD")
