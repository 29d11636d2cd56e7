#!/usr/bin/env bash
# clang-tidy, with .clang-tidy, over the files of server/ outside server/engine, tests left out.
# Takes some minutes; needs Debian's clang-tidy, and a server that has been built file by file
# (-DCMAKE_UNITY_BUILD=OFF).
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files 'server/*.cc' | grep -vE '^server/(engine|fuzz)/|_(test|benchmark)\.cc$' |
  xargs -P"$(nproc)" -n1 clang-tidy --quiet -p build/server --extra-arg=-Wno-unknown-warning-option
