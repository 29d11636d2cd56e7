#!/usr/bin/env bash
# Linters, then C++ tests, then Python and end-to-end tests. `make test` runs setup first.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/lint.sh
ctest --test-dir build/server --output-on-failure --no-tests=error
.venv/bin/python -m pytest "$@"
