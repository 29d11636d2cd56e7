"""The fork: TF Serving 2.20.0 with the contents of tf_patches/ and serving_patches/ added.

`make fork` runs `python3 -m fork`, which turns an upstream tree into a tree for Bazel. It needs
only the standard library and git. docs/fork.md describes the changes and their reasons.

Read in this order: release.py (the upstream release), upstream.py (how a tree is fetched and
verified), hooks.py (the three lines changed in it), new_files.py (the files added to it),
__main__.py (the command line).
"""
