#!/usr/bin/env bash
# Builds everything; runs the linters, the C++ tests with Bazel and CTest, then the Python and
# end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
scripts/setup.sh all
# Needed by examples/cpp, examples/go and examples/java.
install_debian_packages libgrpc++-dev golang-go golang-google-grpc-dev golang-google-protobuf-dev protoc-gen-go-1-5 \
  default-jdk-headless libgrpc-java libguava-java libnetty-java libperfmark-java libprotobuf-java
install_debian_packages chromium fonts-dejavu-core # tests open the pages in a real browser
scripts/lint.sh
scripts/bazel.sh
# Runs failed tests once more, one at a time, because the machine may have been too busy. Names them
# in the last line if they then pass.
flaky=()
ctest=(ctest --test-dir build/server --output-on-failure)
if ! "${ctest[@]}" --no-tests=error; then
  mapfile -t flaky < <(sed 's/^[0-9]*://' build/server/Testing/Temporary/LastTestsFailed.log)
  "${ctest[@]}" --rerun-failed
fi
# Runs two groups of tests at a time, because tests spend much of their time waiting for servers.
run_tests=(.venv/bin/python -m pytest)
"${run_tests[@]}" -n 2 --dist loadgroup "$@" || {
  [ $? -eq 1 ]
  mapfile -t -O "${#flaky[@]}" flaky < <(.venv/bin/python -c \
    'import json; print(*json.load(open(".pytest_cache/v/cache/lastfailed")), sep="\n")')
  "${run_tests[@]}" --last-failed --last-failed-no-failures none "$@"
}
[ ${#flaky[@]} -eq 0 ] || echo "make test: passed, but these tests failed at first: ${flaky[*]}"
