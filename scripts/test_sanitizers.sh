#!/usr/bin/env bash
# The tests of what several threads share (server/states, scheduling, net, http1, http2; the log, files and
# threads of base) under a sanitizer. They need nothing that was built without.
#   scripts/test_sanitizers.sh [thread|address,undefined]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
sanitizer=${1:-thread}
build=build/sanitizer-${sanitizer%%,*}
tests=(distinct_rows_test key_test reuse_estimator_test row_keys_test state_cache_test state_store_test
  stored_keys_test
  cost_estimate_test joined_share_test memory_estimate_test request_queue_test run_memory_test slice_size_test
  idle_workers_test long_requests_test worker_pool_test
  file_test log_test
  budget_test connection_test listener_test peer_test socket_test
  client_call_test client_test grpc_headers_test inflate_test message_reader_test server_test
  target_test
  framing_test gzip_test http1_server_test message_test request_memory_test router_test slice_buffer_test)
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCOLCAST_PYTHON="$PWD/.venv/bin/python" -DCOLCAST_SANITIZER="$sanitizer" > "$build-configure.log" ||
  { cat "$build-configure.log" >&2; exit 1; }
ninja -C "$build" --quiet "${tests[@]}"
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for test in "${tests[@]}"; do
  "$build/bin/$test" --gtest_brief=1
done
