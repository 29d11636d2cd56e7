#!/usr/bin/env bash
# Builds both distributions as wheels: scripts/wheels.sh [--all] [DIRECTORY], by default build/wheels. The server's wheel
# contains what is built in build/server, with an engine for .venv's TensorFlow. With --all, it also contains engines for
# the other releases in requirements/tensorflow_releases.py; each is compiled in a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
exec 9> build/wheels.lock # only one at a time, because tests that run in parallel share the folders
flock 9
all=
[ "${1:-}" != --all ] || { all=yes; shift; }
wheels=$(realpath -m "${1:-build/wheels}")
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
export COLCAST_PYTHON=$PWD/.venv/bin/python COLCAST_ENGINES=
pip=(.venv/bin/pip --quiet --disable-pip-version-check)
build=("${pip[@]}" wheel --no-deps --no-build-isolation)
own=$("$COLCAST_PYTHON" -c 'from importlib.metadata import version as v; print(v("tensorflow-cpu"))')
for release in $("$COLCAST_PYTHON" requirements/tensorflow_releases.py); do
  [ "$release" != "$own" ] || continue
  [ "$all" ] || { echo "without an engine for TensorFlow $release, which scripts/wheels.sh --all compiles"; continue; }
  beside=build/tensorflow-$release
  [ -f "$beside.log" ] || "${pip[@]}" install --no-deps --target "$beside" "tensorflow-cpu==$release"
  cmake -S . -B "build/server-$release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOLCAST_PYTHON="$COLCAST_PYTHON" \
    -DCOLCAST_TENSORFLOW="$PWD/$beside/tensorflow" > "$beside.log"
  cmake --build "build/server-$release" --parallel 2 --target colcast_engine >> "$beside.log"
  cmake --install "build/server-$release" --component engine --strip --prefix "$raw" >> "$beside.log"
  COLCAST_ENGINES+="$raw/bin/libcolcast_engine-$release.so;"
done
"${build[@]}" --wheel-dir "$wheels" .
"${build[@]}" --wheel-dir "$raw" ./server
# The wheel does not contain TensorFlow's libraries: the engine uses the installed ones.
PATH=$PWD/.venv/bin:$PATH LD_LIBRARY_PATH=$("$COLCAST_PYTHON" -c \
  'import importlib.util as u; print(u.find_spec("tensorflow").submodule_search_locations[0])') \
  .venv/bin/auditwheel repair --exclude 'libtensorflow_*' --wheel-dir "$wheels" "$raw"/*.whl
ls -l "$wheels"
