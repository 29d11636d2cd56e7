#!/usr/bin/env bash
# Runs the linters of `make test`, or only mypy:
#   scripts/lint.sh [mypy]
# Each prints its findings with file and line.
set -euo pipefail
cd "$(dirname "$0")/.."

check_types() {  # mypy cannot follow the import hook of the editable install, so it reads links to the packages
  mkdir -p build/types/colcast
  for part in bench cli client export items loadtest server zoo; do
    ln -sfn "../../../$part" "build/types/colcast/$part"
  done
  .venv/bin/mypy -p colcast
  .venv/bin/mypy -p fork
}

if [ "${1:-}" = mypy ]; then
  check_types
  exit
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
check_types
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r .venv/bin/clang-format --dry-run --Werror
scripts/check_layers.sh
fork/buildifier.sh
