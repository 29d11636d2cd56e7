#!/usr/bin/env bash
# Runs the linters of `make test`. Each prints its findings with file and line.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/ruff check .
.venv/bin/ruff format --check .
scripts/mypy.sh
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r .venv/bin/clang-format --dry-run --Werror
scripts/check_layers.sh
fork/buildifier.sh
