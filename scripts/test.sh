#!/usr/bin/env bash
# Builds everything; linters, then C++ tests by Bazel and CTest, then Python and end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
scripts/setup.sh all
install_debian_packages chromium fonts-dejavu-core # the pages are looked at in a real browser
scripts/lint.sh
scripts/bazel.sh
ctest --test-dir build/server --output-on-failure --no-tests=error
# Two at a time: much of the time goes into waiting and into starting servers.
.venv/bin/python -m pytest -n 2 --dist loadgroup "$@"
