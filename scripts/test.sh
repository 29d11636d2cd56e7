#!/usr/bin/env bash
# Builds everything; linters, then C++ tests by Bazel and CTest, then Python and end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
scripts/setup.sh all
# examples/cpp, examples/go and examples/java
install_debian_packages libgrpc++-dev golang-go golang-google-grpc-dev golang-google-protobuf-dev protoc-gen-go-1-5 \
  default-jdk-headless libgrpc-java libguava-java libnetty-java libperfmark-java libprotobuf-java
install_debian_packages chromium fonts-dejavu-core # the pages are looked at in a real browser
scripts/lint.sh
scripts/bazel.sh
# What fails beside others is run once more by itself: a machine may be too busy for a while.
ctest --test-dir build/server --output-on-failure --no-tests=error ||
  ctest --test-dir build/server --output-on-failure --rerun-failed
# Two at a time: much of the time goes into waiting and into starting servers.
run_tests=(.venv/bin/python -m pytest)
"${run_tests[@]}" -n 2 --dist loadgroup "$@" ||
  { [ $? -eq 1 ] && "${run_tests[@]}" --last-failed --last-failed-no-failures none "$@"; }
