#!/usr/bin/env bash
# Builds the fuzz targets and runs each for FUZZ_SECONDS (default 60) under AddressSanitizer and
# UndefinedBehaviorSanitizer, from the inputs in tests/hostile/corpus and those that earlier runs
# found. Inputs that fail are left in build/fuzz-text/found. After fixing the bug, copy the input to
# build/fuzz-text/kept/NAME and run `scripts/corpus.sh pack NAME build/fuzz-text/kept/NAME`.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
seconds=${FUZZ_SECONDS:-60}
build=build/fuzz-text

install_debian_packages clang libclang-rt-14-dev
cmake -S . -B $build -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCOLCAST_FUZZ=ON > $build-configure.log || { cat $build-configure.log >&2; exit 1; }
ninja -C $build --quiet grpc_message_fuzz http1_server_fuzz http2_client_fuzz http2_server_fuzz \
  infer_request_fuzz item_table_fuzz rest_fuzz model_config_fuzz

fuzz() {  # target, corpus, further options
  local target=$build/bin/$1 corpus=$build/kept/$2 log=$build/$1.log
  shift 2
  mkdir -p "$target.corpus" $build/found
  rm -rf "$corpus"
  scripts/corpus.sh unpack "$(basename "$corpus")" "$corpus"
  echo "fuzzing $(basename "$target") for $seconds s (log: $log)"
  if ! "$target" -max_total_time="$seconds" -max_len=1000 -print_final_stats=1 "$@" \
    -artifact_prefix=$build/found/ "$target.corpus" "$corpus" > "$log" 2>&1; then
    grep -A 3 -E "DISAGREEMENT|runtime error|ERROR:|Test unit written" "$log" >&2
    exit 1
  fi
  echo "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, no failure"
}
fuzz rest_fuzz rest -dict=server/fuzz/rest.dict
fuzz model_config_fuzz config
fuzz item_table_fuzz items -max_len=8000
fuzz http1_server_fuzz http1_server
fuzz http2_server_fuzz http2_server
fuzz http2_client_fuzz http2_client
fuzz grpc_message_fuzz grpc_message
fuzz infer_request_fuzz infer_request
