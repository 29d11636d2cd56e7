#!/usr/bin/env bash
# Builds the fuzz target, runs it for FUZZ_SECONDS (default 60), and adds to tests/hostile/corpus the
# inputs that reach code no other file there reaches. A disagreement is left in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. scripts/environment.sh
seconds=${FUZZ_SECONDS:-60}
corpus=tests/hostile/corpus

install_debian_packages clang libclang-rt-14-dev
cmake -S server/engine/fuzz -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ > build/fuzz-configure.log \
  || { cat build/fuzz-configure.log >&2; exit 1; }
ninja -C build/fuzz --quiet

mkdir -p build/fuzz/corpus build/fuzz/found
echo "fuzzing for $seconds s (log: build/fuzz/run.log)"
if ! build/fuzz/wire_fuzz -max_total_time="$seconds" -max_len=600 -print_final_stats=1 \
  -artifact_prefix=build/fuzz/found/ build/fuzz/corpus "$corpus" > build/fuzz/run.log 2>&1; then
  grep -A 1 -E "DISAGREEMENT|runtime error|ERROR:|Test unit written" build/fuzz/run.log >&2
  exit 1
fi
before=$(find "$corpus" -type f | wc -l)
build/fuzz/wire_fuzz -merge=1 -use_counters=0 -max_len=600 "$corpus" build/fuzz/corpus \
  > build/fuzz/merge.log 2>&1
after=$(find "$corpus" -type f | wc -l)
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/run.log)
echo "$runs executions, no disagreement; $corpus: $after inputs, $((after - before)) of them new"
