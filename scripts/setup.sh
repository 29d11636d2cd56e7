#!/usr/bin/env bash
# Installs the Debian packages, makes the virtual environment .venv, and builds CMake's targets, by
# default the native server. Skips each step that is already done.
#   scripts/setup.sh [TARGET...]
#   scripts/setup.sh environment   builds nothing
#   scripts/setup.sh estimator     makes .venv-estimator: TensorFlow 2.15, the last release with Estimators, and
#                                  matching releases of TF-DF and TF-Ranking
#   scripts/setup.sh jax           makes .venv-jax: JAX 0.6, the last release that can also write TensorFlow's own ops,
#                                  with .venv's versions of TensorFlow and Keras
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

case ${1:-} in
  estimator)
    if [ "$("$PYTHON" -c 'import sys; print(sys.version_info.minor)')" -gt 11 ] && ! PYTHON=$(command -v python3.11); then
      say "no Python 3.11, which TensorFlow 2.15 needs: the tests of Estimators are skipped"
      exit
    fi
    require_python 11
    make_environment .venv-estimator requirements/estimator.lock -e .
    exit
    ;;
  jax)
    require_python 13
    make_environment .venv-jax requirements/jax.lock
    exit
    ;;
esac
mkdir -p build
# shellcheck disable=SC2046
install_debian_packages $(cat scripts/debian-packages.txt)
# npm only downloads the Bazel linter. Does not replace an installed npm, because Debian's npm
# conflicts with a Node.js that is not Debian's.
command -v npm >/dev/null || install_debian_packages npm
require_python 13
make_environment .venv requirements/dev.lock -e .
[ "${1:-}" = environment ] && exit
[ $# -gt 0 ] || set -- colcast_model_server colcast_engine colcast_sender
build "$@"
