#!/usr/bin/env bash
# Runs the fuzzer of the independence rule (tests/rows/fuzz.py), then builds and runs those of server/fuzz and
# server/engine/fuzz, each for FUZZ_SECONDS (default 60). Starts from the
# inputs in tests/hostile/corpus.tar.gz, and adds inputs that reach new code to that archive. Leaves inputs that fail in
# build/fuzz/found. After fixing the error, copy the input to build/fuzz/corpus/NAME and run
# `scripts/corpus.sh pack build/fuzz/corpus`.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/environment.sh
seconds=${FUZZ_SECONDS:-60}
corpus=build/fuzz/corpus

install_debian_packages clang libclang-rt-14-dev
mkdir -p build/fuzz/found
scripts/corpus.sh unpack $corpus

build() {  # folder, sources, options
  cmake -S "$2" -B "$1" -G Ninja -DCMAKE_CXX_COMPILER=clang++ "${@:3}" > "$1-configure.log" || {
    cat "$1-configure.log" >&2
    exit 1
  }
}
fuzz() {  # program, folder of its inputs, options
  local program=$1 inputs=$corpus/$2 log=build/fuzz/$2 before after
  shift 2
  mkdir -p "$log.new"
  echo "fuzzing $(basename "$program") for $seconds s (log: $log.log)"
  if ! "$program" -max_total_time="$seconds" -max_len=1000 -print_final_stats=1 "$@" \
    -artifact_prefix=build/fuzz/found/ "$log.new" "$inputs" > "$log.log" 2>&1; then
    grep -A 3 -E "DISAGREEMENT|runtime error|ERROR:|Test unit written" "$log.log" >&2
    exit 1
  fi
  before=$(find "$inputs" -type f | wc -l)
  "$program" -merge=1 -use_counters=0 -max_len=1000 "$@" "$inputs" "$log.new" > "$log.merge.log" 2>&1
  after=$(find "$inputs" -type f | wc -l)
  [ "$after" = "$before" ] || scripts/corpus.sh pack $corpus
  echo "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log.log") executions, no failure;" \
    "$after inputs kept, $((after - before)) of them new"
}

echo "fuzzing the independence rule for $seconds s (log: build/fuzz/rows.log)"
if ! .venv/bin/python -m tests.rows.fuzz --seconds "$seconds" --first "$RANDOM" > build/fuzz/rows.log 2>&1; then
  grep -A 30 -E "^seed |Error" build/fuzz/rows.log >&2
  exit 1
fi
grep UNSOUND build/fuzz/rows.log

build build/fuzz/engine server/engine/fuzz
ninja -C build/fuzz/engine --quiet
fuzz build/fuzz/engine/wire_fuzz wire -max_len=600
fuzz build/fuzz/engine/example_fuzz examples -max_len=600
fuzz build/fuzz/engine/index_fuzz index -max_len=2000

build build/fuzz/server . -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCOLCAST_FUZZ=ON
fuzz_server() {
  ninja -C build/fuzz/server --quiet "$1"
  fuzz build/fuzz/server/bin/"$@"
}
fuzz_server rest_fuzz rest -dict=server/fuzz/rest.dict
fuzz_server model_config_fuzz config
fuzz_server item_table_fuzz items -max_len=8000
fuzz_server http1_server_fuzz http1_server
fuzz_server http2_server_fuzz http2_server
fuzz_server grpc_message_fuzz grpc_message
fuzz_server infer_request_fuzz infer_request
