#!/usr/bin/env bash
# Builds and tests both patch folders with Bazel (docs/compatibility.md). `make bazel` first runs
# `scripts/setup.sh environment`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian_packages bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto \
  bazel-skylib googletest
trap 'tools/bazel shutdown' EXIT
tools/bazel test --jobs=2 --noshow_progress //tf_patches/... //serving_patches/...
