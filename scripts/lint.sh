#!/usr/bin/env bash
# The linters of `make test`. Each prints what it dislikes and where.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin

# mypy does not see through the editable install's import hook: give it the packages as links.
mkdir -p build/types/colcast
for part in cli client export loadtest server zoo; do
  ln -sfn "../../../$part" "build/types/colcast/$part"
done

$bin/ruff check .
$bin/ruff format --check .
$bin/mypy -p colcast
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r $bin/clang-format --dry-run --Werror
scripts/check_layers.sh
