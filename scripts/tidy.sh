#!/usr/bin/env bash
# Runs clang-tidy on server/, without server/engine, fuzzers and tests. Takes some minutes. Needs
# Debian's clang-tidy, and a server that was built file by file (-DCMAKE_UNITY_BUILD=OFF).
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files 'server/*.cc' | grep -vE '^server/(engine|fuzz)/|_(test|benchmark)\.cc$' |
  xargs -P"$(nproc)" -n1 clang-tidy --quiet -p build/server --extra-arg=-Wno-unknown-warning-option
