#!/usr/bin/env bash
# The tests of server/states under the thread sanitizer. They need nothing that was built without.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
build=build/threads
tests=(distinct_rows_test key_test memory_test reuse_estimator_test row_keys_test store_test)
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCOLCAST_PYTHON="$PWD/.venv/bin/python" -DCOLCAST_THREAD_SANITIZER=ON > $build-configure.log ||
  { cat $build-configure.log >&2; exit 1; }
ninja -C $build --quiet "${tests[@]}"
for test in "${tests[@]}"; do
  TSAN_OPTIONS=halt_on_error=1 $build/bin/"$test" --gtest_brief=1
done
