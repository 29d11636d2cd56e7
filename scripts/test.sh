#!/usr/bin/env bash
# Linters, then C++ tests, then Python and end-to-end tests. `make test` runs setup first.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
install_debian_packages chromium fonts-dejavu-core # the pages are looked at in a real browser
scripts/lint.sh
ctest --test-dir build/server --output-on-failure --no-tests=error
.venv/bin/python -m pytest "$@"
