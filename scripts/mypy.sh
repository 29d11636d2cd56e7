#!/usr/bin/env bash
# Type checks the Python packages. mypy cannot follow the import hook of the editable install, so it
# reads links to the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/types/colcast
for part in bench cli client export items loadtest server zoo; do
  ln -sfn "../../../$part" "build/types/colcast/$part"
done
.venv/bin/mypy -p colcast
.venv/bin/mypy -p fork
