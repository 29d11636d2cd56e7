#!/usr/bin/env bash
# Runs clang's thread safety analysis on the files in server/ that use ABSL_GUARDED_BY: it checks
# that guarded data is used only while its mutex is held. Leaves out server/engine, which includes
# TensorFlow. Needs Debian's clang and libc++-dev, and a server that has been built.
set -euo pipefail
cd "$(dirname "$0")/.."
git grep -lE --untracked 'ABSL_(GUARDED_BY|EXCLUSIVE_LOCKS_REQUIRED)' -- 'server/*.h' 'server/*.cc' ':!server/engine/' |
  while read -r file; do
    ls "${file%.*}"*.cc 2> /dev/null || git grep -l "include \"$file\"" -- 'server/*.cc' || true
  done | grep -v '_test\.cc$\|server/engine/' | sort -u |
  xargs -P"$(nproc)" -n1 clang++ -std=c++17 -fsyntax-only -stdlib=libc++ \
    -D_LIBCPP_ENABLE_THREAD_SAFETY_ANNOTATIONS -include scripts/annotated_locks.h \
    -Wthread-safety -Werror=thread-safety -I. -isystem build/server/config_protos \
    -isystem build/server/serving_protos
