#!/usr/bin/env bash
# Everything `make demo` and `make test` need, each step skipped when it is already done:
# Debian packages, the virtual environment .venv, the native server in build/server.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

install_debian_packages() {
  command -v dpkg-query >/dev/null || die "dpkg-query not found: setup supports Debian 12 and its relatives"
  local wanted missing
  wanted=$(cat scripts/debian-packages.txt)
  # shellcheck disable=SC2086
  missing=$(comm -23 <(printf '%s\n' $wanted | sort) \
    <(dpkg-query -W -f='${db:Status-Abbrev}${binary:Package}\n' $wanted 2>/dev/null |
      sed -n 's/^ii *//p' | sed 's/:.*//' | sort))
  # npm only fetches the Bazel linter; where Node.js came from elsewhere, Debian's npm conflicts.
  command -v npm >/dev/null || missing="$missing npm"
  [ -z "${missing// /}" ] && return
  say "installing Debian packages:" $missing
  [ "$(id -u)" = 0 ] || die "these Debian packages are missing and only root can install them:" $missing
  apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

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
install_debian_packages
require_python
make_environment .venv requirements/dev.lock -e .
build_server
