#!/usr/bin/env bash
# Installs the Debian packages, makes the virtual environment .venv, and builds CMake's targets, by
# default the native server. Skips each step that is already done.
#   scripts/setup.sh [TARGET...]
#   scripts/setup.sh environment   builds nothing
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

build() {  # CMake's targets
  if [ ! -f build/server/build.ninja ]; then
    say "configuring the native server"
    cmake -S . -B build/server -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCOLCAST_PYTHON="$PWD/.venv/bin/python" >build/configure.log || { cat build/configure.log >&2; die "cmake failed"; }
  fi
  say "building" "$@"
  cmake --build build/server --target "$@"
}

mkdir -p build
# shellcheck disable=SC2046
install_debian_packages $(cat scripts/debian-packages.txt)
# npm is needed only to download the Bazel linter. If Node.js is not Debian's, Debian's npm
# conflicts with it.
command -v npm >/dev/null || install_debian_packages npm
require_python 13
make_environment .venv requirements/dev.lock -e .
[ "${1:-}" = environment ] && exit
[ $# -gt 0 ] || set -- colcast_model_server colcast_engine colcast_sender
build "$@"
