#!/usr/bin/env bash
# Both distributions as wheels: scripts/wheels.sh [DIRECTORY], by default build/wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=$(realpath -m "${1:-build/wheels}")
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
export COLCAST_PYTHON=$PWD/.venv/bin/python
build=(.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation)
"${build[@]}" --wheel-dir "$wheels" .
"${build[@]}" --wheel-dir "$raw" ./server
# TensorFlow's libraries are not taken in: they come with tensorflow-cpu.
PATH=$PWD/.venv/bin:$PATH LD_LIBRARY_PATH=$("$COLCAST_PYTHON" -c \
  'import importlib.util as u; print(u.find_spec("tensorflow").submodule_search_locations[0])') \
  .venv/bin/auditwheel repair --exclude 'libtensorflow_*' --wheel-dir "$wheels" "$raw"/*.whl
ls -l "$wheels"
