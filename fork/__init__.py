"""The fork proper: TF Serving 2.20.0, with tf_patches/ and serving_patches/ laid in.

`make fork` runs `python3 -m fork`: an upstream tree in, a tree to build with Bazel out. Standard
library and git only. docs/fork.md tells what is changed and why.

Read in this order: release.py (what upstream is wanted), upstream.py (how a tree is got and
verified), hooks.py (the three lines changed in it), new_files.py (what is added to it),
__main__.py (the command line).
"""
