#!/usr/bin/env bash
# clang-tidy, with .clang-tidy, over the files of server/ outside server/engine, tests left out, or
# over those named. Takes some minutes; needs Debian's clang-tidy, and a server that has been built.
#   scripts/tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- $(git ls-files 'server/*.cc' ':!server/engine/' ':!server/fuzz/' ':!*_test.cc' ':!*_benchmark.cc')
printf '%s\n' "$@" | xargs -P"$(nproc)" -n1 clang-tidy --quiet -p build/server
