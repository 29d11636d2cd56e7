#!/usr/bin/env bash
# Builds both distributions as wheels: scripts/wheels.sh [--arm64] [--all] [DIRECTORY], by default build/wheels. The
# server's wheel contains what is built in build/server, with an engine for .venv's TensorFlow. With --all, it also
# contains engines for the other releases in requirements/tensorflow_releases.py; each is compiled in a folder of its
# own. With --arm64, builds only the server's wheel, from what scripts/arm64.sh has built.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
mkdir -p build
exec 9> build/wheels.lock # only one at a time, because tests that run in parallel share the folders
flock 9
export COLCAST_PYTHON=$PWD/.venv/bin/python COLCAST_ENGINES=
pip=(.venv/bin/pip --quiet --disable-pip-version-check)
install=("${pip[@]}" install --no-deps)
own=$("$COLCAST_PYTHON" -c 'from importlib.metadata import version as v; print(v("tensorflow-cpu"))')
folder=build name=tensorflow-cpu toolchain=() all=
if [ "${1:-}" = --arm64 ]; then
  shift
  folder=build/arm64 name=tensorflow install=("${TENSORFLOW_FOR_ARM64[@]}")
  toolchain=(-DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake")
  export _PYTHON_HOST_PLATFORM=linux-aarch64 # for the wheel's name
fi
[ "${1:-}" != --all ] || { all=yes; shift; }
wheels=$(realpath -m "${1:-build/wheels}")
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
build=("${pip[@]}" wheel --no-deps --no-build-isolation)
for release in $("$COLCAST_PYTHON" requirements/tensorflow_releases.py); do
  [ "$release" != "$own" ] || continue
  [ "$all" ] || { echo "without an engine for TensorFlow $release, which scripts/wheels.sh --all compiles"; continue; }
  beside=$folder/tensorflow-$release
  [ -f "$beside.log" ] || "${install[@]}" --target "$beside" "$name==$release"
  cmake -S . -B "$folder/server-$release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOLCAST_PYTHON="$COLCAST_PYTHON" \
    -DCOLCAST_TENSORFLOW="$PWD/$beside/tensorflow" "${toolchain[@]}" > "$beside.log"
  cmake --build "$folder/server-$release" --parallel 2 --target colcast_engine >> "$beside.log"
  cmake --install "$folder/server-$release" --component engine --strip --prefix "$raw" >> "$beside.log"
  COLCAST_ENGINES+="$raw/bin/libcolcast_engine-$release.so;"
done
rm -rf build/lib build/bdist.* # setuptools would pack modules that were removed since
[ ${#toolchain[@]} -gt 0 ] || "${build[@]}" --wheel-dir "$wheels" .
"${build[@]}" --config-settings=build-dir="../$folder/server" --wheel-dir "$raw" ./server
# The wheel does not contain TensorFlow's libraries: the engine uses the installed ones.
PATH=$PWD/.venv/bin:$PATH LD_LIBRARY_PATH=$("$COLCAST_PYTHON" -c \
  'import importlib.util as u; print(u.find_spec("tensorflow").submodule_search_locations[0])') \
  .venv/bin/auditwheel repair --exclude 'libtensorflow_*' --wheel-dir "$wheels" "$raw"/*.whl
ls -l "$wheels"
