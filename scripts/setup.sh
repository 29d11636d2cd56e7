#!/usr/bin/env bash
# Everything `make demo` and `make test` need, each step skipped when it is already done:
# Debian packages, the virtual environment .venv, the native server in build/server.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

build_server() {
  if [ ! -f build/server/build.ninja ]; then
    say "configuring the native server"
    cmake -S . -B build/server -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCOLCAST_PYTHON="$PWD/.venv/bin/python" >build/configure.log || { cat build/configure.log >&2; die "cmake failed"; }
  fi
  say "building the native server"
  cmake --build build/server
}

mkdir -p build
# shellcheck disable=SC2046
install_debian_packages $(cat scripts/debian-packages.txt)
# npm only fetches the Bazel linter; where Node.js came from elsewhere, Debian's npm conflicts.
command -v npm >/dev/null || install_debian_packages npm
require_python
make_environment .venv requirements/dev.lock -e .
build_server
