#!/usr/bin/env bash
# Runs the tests of folders whose objects several threads share, or that read untrusted bytes, under
# a sanitizer. These tests link nothing that was built without it.
#   scripts/test_sanitizers.sh [thread|address,undefined]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
sanitizer=${1:-thread}
build=build/sanitizer-${sanitizer%%,*}
tests=({base,http1,http2,items,net,scheduling,states,tables,tracing,wire}_test)
# Protobuf's maps have another layout under the thread sanitizer, but Debian's library is built without it.
[ "$sanitizer" = thread ] || tests+=({api,inference,rest}_test)
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCOLCAST_PYTHON="$PWD/.venv/bin/python" -DCOLCAST_SANITIZER="$sanitizer" > "$build-configure.log" ||
  { cat "$build-configure.log" >&2; exit 1; }
ninja -C "$build" --quiet "${tests[@]}"
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for test in "${tests[@]}"; do
  # Skips tests that limit the address space, because sanitizers need more, and tests that raise a
  # signal, because sanitizers handle it.
  "$build/bin/$test" --gtest_brief=1 --gtest_filter='-*ThreadThatCannotStart*:BusErrorGuardDeathTest*'
done
