"""Adds our packages to the upstream trees.

serving_patches/ becomes a package of TF Serving, and tf_patches/ a package of TensorFlow. Bazel
downloads TensorFlow, so tf_patches/ is added to the patch file that TF Serving applies to it.
"""

from __future__ import annotations

from pathlib import Path

from fork.hooks import ForkError

HERE = Path(__file__).resolve().parent.parent
SERVING = "serving_patches"
TENSORFLOW = "tf_patches"


def package(folder: str) -> dict[str, str]:
    """The Bazel package in `folder` of this repository: path in the upstream tree -> text."""
    paths = sorted(
        p
        for p in (HERE / folder).iterdir()
        if p.suffix in (".h", ".cc") and not p.stem.endswith("_benchmark")
    )
    texts = {f"{folder}/{p.name}": p.read_text() for p in [HERE / folder / "BUILD", *paths]}
    # In the fork, tf_patches is a package of TensorFlow's repository.
    build = f"{folder}/BUILD"
    texts[build] = texts[build].replace(f'"//{TENSORFLOW}:', f'"@org_tensorflow//{TENSORFLOW}:')
    return texts


def tensorflow_patch() -> str:
    """A patch that adds tf_patches/ to TensorFlow and changes nothing else."""
    parts = []
    for path, text in package(TENSORFLOW).items():
        lines = text.splitlines()
        parts += [
            f"diff --git a/{path} b/{path}",
            "new file mode 100644",
            "--- /dev/null",
            f"+++ b/{path}",
            f"@@ -0,0 +1,{len(lines)} @@",
            *(f"+{line}" for line in lines),
        ]
    return "\n".join(parts) + "\n"


def registered(patches: str, name: str) -> str:
    """Appends our patch to `patches`, the text of the file `name`, or replaces an earlier version.

    Raises:
        ForkError: Another patch follows ours in the file.
    """
    ours = f"diff --git a/{TENSORFLOW}/"
    upstream, begin, rest = patches.partition(ours)
    for line in (begin + rest).splitlines():
        if line.startswith("diff --git ") and not line.startswith(ours):
            raise ForkError(f"{name}: another patch follows ours: {line}")
    if upstream and not upstream.endswith("\n"):
        upstream += "\n"
    return upstream + tensorflow_patch()
