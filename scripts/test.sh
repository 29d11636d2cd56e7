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
# Runs failed tests once more, one at a time, because the machine may have been too busy.
ctest --test-dir build/server --output-on-failure --no-tests=error ||
  ctest --test-dir build/server --output-on-failure --rerun-failed
# Runs two groups of tests at a time, because tests spend much of their time waiting for servers.
run_tests=(.venv/bin/python -m pytest)
"${run_tests[@]}" -n 2 --dist loadgroup "$@" ||
  { [ $? -eq 1 ] && "${run_tests[@]}" --last-failed --last-failed-no-failures none "$@"; }
