"""The fork: TF Serving 2.20.0 with tf_patches/ and serving_patches/ added.

`make fork` runs `python3 -m fork`, which turns an upstream tree into a tree for Bazel. It needs
only the standard library and git. docs/compatibility.md describes the changes and their reasons.

Read in this order: release.py (the upstream release), upstream.py (fetches and verifies a tree),
hooks.py (changes three lines), new_files.py (adds files), __main__.py (the command line).
"""
