#!/usr/bin/env bash
# Builds the fuzz targets, runs each for FUZZ_SECONDS (default 60), and adds to its archive in
# tests/hostile/corpus the inputs that reach new code. Inputs on which the two sides disagree are
# left in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. scripts/environment.sh
seconds=${FUZZ_SECONDS:-60}

install_debian_packages clang libclang-rt-14-dev
cmake -S server/engine/fuzz -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ > build/fuzz-configure.log \
  || { cat build/fuzz-configure.log >&2; exit 1; }
ninja -C build/fuzz --quiet

fuzz() {  # target, archive, longest input
  local target=build/fuzz/$1 kept=build/fuzz/kept/$2 log=build/fuzz/$1 before after runs
  mkdir -p "$target.corpus" build/fuzz/found
  rm -rf "$kept"
  scripts/corpus.sh unpack "$2" "$kept"
  echo "fuzzing $1 for $seconds s (log: $log.log)"
  if ! "$target" -max_total_time="$seconds" -max_len="$3" -print_final_stats=1 \
    -artifact_prefix=build/fuzz/found/ "$target.corpus" "$kept" > "$log.log" 2>&1; then
    grep -A 1 -E "DISAGREEMENT|runtime error|ERROR:|Test unit written" "$log.log" >&2
    exit 1
  fi
  before=$(find "$kept" -type f | wc -l)
  "$target" -merge=1 -use_counters=0 -max_len="$3" "$kept" "$target.corpus" > "$log.merge.log" 2>&1
  after=$(find "$kept" -type f | wc -l)
  [ "$after" = "$before" ] || scripts/corpus.sh pack "$2" "$kept"
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log.log")
  echo "$runs executions, no disagreement; kept: $after inputs, $((after - before)) of them new"
}
fuzz wire_fuzz wire 600
fuzz example_fuzz examples 600
fuzz choice_fuzz choices 600
fuzz index_fuzz index 2000
